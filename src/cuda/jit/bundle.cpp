#include "cuda/jit/bundle.hpp"

#include <ashlar/version.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "base/digest.hpp"
#include "base/fail.hpp"
#include "base/file_cache.hpp"
#include "base/log.hpp"

namespace ashlar::cuda {

namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::array<char, 16> kMagic = {"ashlar pack 1\n\n"};
struct Header {
  std::array<char, 16> magic;
  std::uint64_t file_bytes, entries, index_digest;
  std::array<char, 32> architecture, version;
};
struct IndexRow {
  std::array<char, 32> digest;
  std::array<char, 64> name;
  std::uint64_t offset, bytes, check, zero;
};
static_assert(sizeof(Header) == 104 && sizeof(IndexRow) == 128);

std::uint64_t digest_of(std::string_view bytes) {
  Digest digest;
  digest.add_bytes(bytes);
  return digest.value();
}

// Truncated or padded with zeros.
template <std::size_t N>
std::array<char, N> as_field(std::string_view text) {
  std::array<char, N> field{};
  std::copy_n(text.begin(), std::min(text.size(), N), field.begin());
  return field;
}
template <std::size_t N>
std::string as_text(const std::array<char, N>& field) {
  return {field.begin(), std::find(field.begin(), field.end(), '\0')};
}

struct Closer {
  int descriptor;
  explicit Closer(int opened) : descriptor(opened) {}
  ~Closer() { ::close(descriptor); }
  Closer(const Closer&) = delete;
  Closer& operator=(const Closer&) = delete;
};

}  // namespace

std::uint64_t digest_of_index(std::string head) {
  std::fill_n(head.begin() + offsetof(Header, index_digest), sizeof(std::uint64_t), '\0');
  return digest_of(head);
}

std::string encode_bundle(const std::string& architecture, std::vector<PackedItem> items) {
  const auto name = [](const PackedItem& item) { return FileCache::file_name(item.key); };
  std::sort(items.begin(), items.end(),
            [&](const PackedItem& a, const PackedItem& b) { return name(a) < name(b); });
  const auto same = [](const PackedItem& a, const PackedItem& b) { return a.key == b.key; };
  items.erase(std::unique(items.begin(), items.end(), same), items.end());

  Header header{
      kMagic, 0, items.size(), 0, as_field<32>(architecture), as_field<32>(ASHLAR_VERSION)};
  std::string index;
  std::uint64_t offset = sizeof header + items.size() * sizeof(IndexRow);
  for (const PackedItem& item : items) {
    const IndexRow row{as_field<32>(name(item)), as_field<64>(item.name), offset,
                       item.bytes.size(),        digest_of(item.bytes),   0};
    index.append(reinterpret_cast<const char*>(&row), sizeof row);
    offset += item.bytes.size();
  }
  header.file_bytes = offset;
  const auto with_header = [&] {
    return std::string(reinterpret_cast<const char*>(&header), sizeof header) + index;
  };
  header.index_digest = digest_of_index(with_header());
  std::string file = with_header();
  for (const PackedItem& item : items) file += item.bytes;
  return file;
}

Bundle Bundle::from(std::uint64_t file_bytes, Read read) {
  Header header{};
  if (file_bytes < sizeof header || !read(0, sizeof header, reinterpret_cast<char*>(&header)) ||
      header.magic != kMagic)
    fail(ErrorCode::io, "not a kernel bundle of this version of Ashlar");
  if (header.file_bytes != file_bytes)
    fail(ErrorCode::io, "damaged: {} bytes, its header says {}", file_bytes, header.file_bytes);
  if (header.entries > (file_bytes - sizeof header) / sizeof(IndexRow))
    fail(ErrorCode::io, "damaged: an index of {} entries in {} bytes", header.entries, file_bytes);
  std::string head(sizeof header + header.entries * sizeof(IndexRow), '\0');
  if (!read(0, head.size(), head.data())) fail(ErrorCode::io, "its index cannot be read");
  if (digest_of_index(head) != header.index_digest)
    fail(ErrorCode::io, "damaged: the digest of its index does not match");

  Bundle bundle;
  bundle.read_ = std::move(read);
  bundle.architecture_ = as_text(header.architecture);
  bundle.version_ = as_text(header.version);
  for (std::size_t i = 0; i < header.entries; ++i) {
    IndexRow row;
    std::memcpy(&row, head.data() + sizeof header + i * sizeof row, sizeof row);
    bundle.rows_.push_back(
        {as_text(row.digest), as_text(row.name), row.offset, row.bytes, row.check});
    const Row& added = bundle.rows_.back();
    const bool fits = added.offset <= file_bytes && added.bytes <= file_bytes - added.offset;
    const bool sorted = i == 0 || bundle.rows_[i - 1].digest < added.digest;
    if (!fits || !sorted)
      fail(ErrorCode::io, "damaged: entry {} is out of order or out of range", i);
  }
  return bundle;
}

Bundle Bundle::open(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) fail(ErrorCode::io, "{}: {}", path, std::strerror(errno));
  const auto file = std::make_shared<const Closer>(descriptor);
  struct stat status {};
  if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode))
    fail(ErrorCode::io, "{}: not a regular file", path);
  const auto read = [file](std::uint64_t offset, std::size_t bytes, char* to) {
    while (bytes > 0) {
      const ssize_t done = ::pread(file->descriptor, to, bytes, static_cast<off_t>(offset));
      if (done < 0 && errno == EINTR) continue;
      if (done <= 0) return false;
      to += done;
      offset += static_cast<std::uint64_t>(done);
      bytes -= static_cast<std::size_t>(done);
    }
    return true;
  };
  try {
    return from(static_cast<std::uint64_t>(status.st_size), read);
  } catch (const Error& error) {
    fail(ErrorCode::io, "{}: {}", path, error.what());
  }
}

const Bundle::Row* Bundle::find(std::string_view digest) const {
  const auto found =
      std::lower_bound(rows_.begin(), rows_.end(), digest,
                       [](const Row& row, std::string_view wanted) { return row.digest < wanted; });
  return found != rows_.end() && found->digest == digest ? &*found : nullptr;
}

std::string Bundle::read(const Row& row) const {
  std::string bytes(row.bytes, '\0');
  if (!read_(row.offset, bytes.size(), bytes.data()) || digest_of(bytes) != row.check)
    fail(ErrorCode::io, "damaged: the digest of kernel '{}' does not match", row.name);
  return bytes;
}

Bundles::Bundles(const std::vector<std::string>& files) {
  for (const std::string& path : files) {
    try {
      Bundle bundle = Bundle::open(path);
      if (bundle.version() == ASHLAR_VERSION)
        packs_.push_back({path, std::move(bundle)});
      else
        log(LogLevel::error, "bundle: {}: built by Ashlar {}, this is {}; it is ignored", path,
            bundle.version(), ASHLAR_VERSION);
    } catch (const Error& error) {
      log(LogLevel::error, "bundle: {}; it is ignored", error.what());
    }
  }
}

std::optional<std::string> Bundles::get(std::string_view key) const {
  if (packs_.empty()) return std::nullopt;
  const std::string digest = FileCache::file_name(key);
  for (const Named& named : packs_) {
    try {
      if (const Bundle::Row* row = named.bundle.find(digest)) return named.bundle.read(*row);
    } catch (const Error& error) {
      log(LogLevel::error, "bundle: {}: {}; the kernel is compiled instead", named.path,
          error.what());
    }
  }
  return std::nullopt;
}

}  // namespace ashlar::cuda
