// The file cache: entry format, atomic writes, locks, inspection.
#include "base/file_cache.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/digest.hpp"
#include "base/log.hpp"

namespace ashlar {

namespace {

constexpr std::string_view kFamily = "ashlar cache entry ";  // prefix of every version
constexpr std::string_view kMagic = "ashlar cache entry 2\n";

std::uint64_t digest_of(std::string_view text, std::uint64_t seed) {
  Digest digest;
  digest.add(seed);
  digest.add_bytes(text);
  return digest.value();
}

// File layout: magic, sizes and digest of the payload, key, payload.
std::string header_of(std::string_view key, std::string_view bytes) {
  return fmt::format("{}{} {} {:016x}\n", kMagic, key.size(), bytes.size(), digest_of(bytes, 3));
}

class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  bool is_open() const { return descriptor_ >= 0; }
  bool write(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(written));
    }
    return true;
  }
  std::optional<std::string> read_all() const {
    struct stat status {};
    if (fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
    std::string bytes(static_cast<std::size_t>(status.st_size), '\0');
    std::size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t read = ::read(descriptor_, bytes.data() + done, bytes.size() - done);
      if (read < 0 && errno == EINTR) continue;
      if (read <= 0) return std::nullopt;
      done += static_cast<std::size_t>(read);
    }
    return bytes;
  }
  bool sync() const { return fsync(descriptor_) == 0; }
  bool lock() const {
    while (flock(descriptor_, LOCK_EX) != 0)
      if (errno != EINTR) return false;
    return true;
  }

 private:
  int descriptor_;
};

// Creates the missing directories of the path.
bool make_directories(const std::string& path) {
  for (std::size_t at = 1; at != std::string::npos;) {
    at = path.find('/', at + 1);
    const std::string part = path.substr(0, at);
    if (mkdir(part.c_str(), 0700) != 0 && errno != EEXIST) return false;
  }
  return true;
}

std::string reason_against(const std::string& directory) {
  struct stat status {};
  if (stat(directory.c_str(), &status) != 0) return {};  // made later
  if (!S_ISDIR(status.st_mode)) return fmt::format("{} is not a directory", directory);
  if (status.st_uid != geteuid())
    return fmt::format("{} belongs to another user; set ASHLAR_CACHE to a directory of your own",
                       directory);
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return fmt::format("{} is writable by other users; run chmod 700 on it", directory);
  return {};
}

}  // namespace

// The lock is released with the file descriptor, even if the process is killed. The lock file is
// unlinked before: a process waiting on the old file and one that creates a new file both look up
// the entry again before they build it.
class FileCache::BuildLock {
 public:
  explicit BuildLock(std::string path)
      : path_(std::move(path)), file_(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {}
  ~BuildLock() {
    if (is_ours_) unlink(path_.c_str());
  }
  BuildLock(const BuildLock&) = delete;
  BuildLock& operator=(const BuildLock&) = delete;
  bool wait() { return is_ours_ = file_.is_open() && file_.lock(); }

 private:
  std::string path_;
  File file_;
  bool is_ours_ = false;
};

FileCache::FileCache(std::string directory)
    : directory_(std::move(directory)),
      refusal_(directory_.empty() ? "no cache directory" : reason_against(directory_)) {
  if (!refusal_.empty() && !directory_.empty()) log(LogLevel::info, "cache: {}", refusal_);
}

namespace {

// Whether `bytes` is an undamaged entry stored under the file name of its key.
bool is_whole(std::string_view bytes, std::string_view name) {
  const std::size_t line = bytes.find('\n', kMagic.size());
  std::size_t key_bytes = 0;
  if (!bytes.starts_with(kMagic) || line == std::string_view::npos ||
      std::from_chars(bytes.data() + kMagic.size(), bytes.data() + line, key_bytes).ec !=
          std::errc() ||
      key_bytes > bytes.size() - line - 1)
    return false;
  const std::string_view key = bytes.substr(line + 1, key_bytes);
  const std::string_view payload = bytes.substr(line + 1 + key_bytes);
  return bytes.substr(0, line + 1) == header_of(key, payload) && FileCache::file_name(key) == name;
}

}  // namespace

std::string FileCache::file_name(std::string_view key) {
  return fmt::format("{:016x}{:016x}", digest_of(key, 1), digest_of(key, 2));
}

std::optional<std::string> FileCache::get(std::string_view key) const {
  if (!refusal_.empty()) return std::nullopt;
  const std::string path = directory_ + "/" + file_name(key);
  const File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) return std::nullopt;
  const std::optional<std::string> bytes = file.read_all();
  if (!bytes) return std::nullopt;
  const std::size_t line = bytes->find('\n', kMagic.size());
  const std::size_t start = line == std::string::npos ? bytes->size() : line + 1 + key.size();
  if (start <= bytes->size()) {
    const std::string_view payload = std::string_view(*bytes).substr(start);
    if (std::string_view(*bytes).substr(0, start) == header_of(key, payload) + std::string(key))
      return std::string(payload);
  }
  log(LogLevel::info, "cache: {} is damaged or of another version and will be rebuilt", path);
  return std::nullopt;
}

bool FileCache::prepare() const { return refusal_.empty() && make_directories(directory_); }

std::shared_ptr<FileCache::BuildLock> FileCache::lock_for_build(std::string_view key) const {
  if (!prepare()) return nullptr;
  auto turn = std::make_shared<BuildLock>(fmt::format("{}/{}.lock", directory_, file_name(key)));
  return turn->wait() ? turn : nullptr;
}

bool FileCache::put(std::string_view key, std::string_view bytes) const {
  if (!refusal_.empty()) return false;
  static std::atomic<unsigned> count{0};
  const std::string path = directory_ + "/" + file_name(key);
  const std::string temporary = fmt::format("{}.{}.{}", path, getpid(), count.fetch_add(1));
  const auto give_up = [&](const char* step) {
    const int reason = errno;
    log(LogLevel::info, "cache: {} {}: {}; the entry is not stored", step, temporary,
        std::strerror(reason));
    unlink(temporary.c_str());
    errno = reason;  // for inspect()
    return false;
  };
  if (!prepare()) return give_up("making the directory of");
  {
    const File file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!file.is_open()) return give_up("creating");
    if (!file.write(header_of(key, bytes)) || !file.write(key) || !file.write(bytes) ||
        !file.sync())
      return give_up("writing");
  }
  if (rename(temporary.c_str(), path.c_str()) != 0) return give_up("renaming");
  return true;
}

FileCache::Health FileCache::inspect() const {
  Health health;
  health.trouble = refusal_;
  if (!refusal_.empty()) return health;
  constexpr std::string_view kTrial = "a trial of this folder";
  if (put(kTrial, kTrial) && get(kTrial) == kTrial)
    unlink((directory_ + "/" + file_name(kTrial)).c_str());
  else
    health.trouble = fmt::format("{} cannot be written: {}", directory_, std::strerror(errno));
  std::error_code error;
  for (const auto& item : std::filesystem::directory_iterator(directory_, error)) {
    const std::string name = item.path().filename().string();
    if (name.find('.') != std::string::npos) continue;  // a lock or temporary file
    const File file(::open(item.path().c_str(), O_RDONLY | O_CLOEXEC));
    const std::optional<std::string> bytes = file.is_open() ? file.read_all() : std::nullopt;
    // Entries of other versions are not checked.
    if (bytes && bytes->starts_with(kFamily) && !bytes->starts_with(kMagic)) continue;
    ++health.entries;
    if (bytes) health.bytes += static_cast<std::int64_t>(bytes->size());
    if (!bytes || !is_whole(*bytes, name)) health.damaged.push_back(item.path().string());
  }
  return health;
}

}  // namespace ashlar
