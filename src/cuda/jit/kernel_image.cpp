#include "cuda/jit/kernel_image.hpp"

#include <ashlar/version.h>
#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <limits>
#include <map>
#include <mutex>
#include <string_view>

#include "base/log.hpp"
#include "base/settings.hpp"
#include "cuda/jit/nvrtc.hpp"

namespace ashlar::cuda {

namespace {

using ImageFuture = std::shared_future<std::shared_ptr<const KernelImage>>;

std::string key_of(const KernelSource& source, const std::string& architecture) {
  return fmt::format("cubin 1 {} {}\n{}", ASHLAR_VERSION, architecture, source.text);
}

// A cache entry: the log's length in decimal, a newline, the log, the cubin.
std::string join(const KernelImage& image) {
  return fmt::format("{}\n{}", image.log.size(), image.log) + image.cubin;
}
std::shared_ptr<const KernelImage> split(const std::string& entry, KernelImage::From from) {
  const std::size_t line = entry.find('\n');
  std::size_t log_bytes = 0;
  for (std::size_t i = 0; i < line && i < entry.size(); ++i) {
    if (entry[i] < '0' || entry[i] > '9') return nullptr;
    log_bytes = log_bytes * 10 + static_cast<std::size_t>(entry[i] - '0');
    if (log_bytes > entry.size()) return nullptr;
  }
  if (line == std::string::npos || line + 1 + log_bytes > entry.size()) return nullptr;
  auto image = std::make_shared<KernelImage>();
  image->log = entry.substr(line + 1, log_bytes);
  image->cubin = entry.substr(line + 1 + log_bytes);
  image->from = from;
  return image;
}

std::shared_ptr<const KernelImage> make_image(const KernelSource& source,
                                              const std::string& architecture,
                                              const std::string& key, const FileCache& disk,
                                              const Bundles& bundles) {
  if (const auto entry = bundles.get(key))
    if (auto image = split(*entry, KernelImage::From::bundle)) return image;
  const auto kept = [&]() -> std::shared_ptr<const KernelImage> {
    const auto entry = disk.get(key);
    return entry ? split(*entry, KernelImage::From::cache) : nullptr;
  };
  if (auto image = kept()) return image;
  const auto turn = disk.lock_for_build(key);
  if (turn != nullptr)
    if (auto image = kept()) return image;  // another process has compiled it in the meantime
  Cubin cubin = compile_cuda(source.name, source.text, architecture);
  auto image = std::make_shared<KernelImage>();
  image->cubin = std::move(cubin.bytes);
  image->log = std::move(cubin.log);
  disk.put(key, join(*image));
  log(LogLevel::debug, "cuda: compiled {} for {}\n{}", source.name, architecture, image->log);
  return image;
}

// The decimal number that ends at `at`.
int number_before(std::string_view text, std::size_t at) {
  while (at > 0 && text[at - 1] == ' ') --at;
  int value = 0, scale = 1;
  for (; at > 0 && text[at - 1] >= '0' && text[at - 1] <= '9'; --at, scale *= 10)
    value += (text[at - 1] - '0') * scale;
  return value;
}

}  // namespace

struct KernelImages::Store {
  struct Entry {
    ImageFuture image;
    std::int64_t bytes = 0;  // 0 while it is being compiled
    std::uint64_t last_use = 0;
  };
  using Entries = std::map<std::string, Entry>;

  Store(FileCache cache, Bundles found, std::int64_t limit)
      : disk(std::move(cache)), bundles(std::move(found)), max_bytes(limit) {}

  void account(const std::string& key, const KernelImage& image) {
    Entry& entry = entries[key];
    entry.bytes = static_cast<std::int64_t>(key.size() + image.cubin.size() + image.log.size());
    bytes += entry.bytes;
    while (bytes > max_bytes) {
      // An image that is being compiled, or is larger than the limit by itself, stays.
      const auto age = [&](const Entries::value_type& item) {
        return item.second.bytes == 0 || item.first == key
                   ? std::numeric_limits<std::uint64_t>::max()
                   : item.second.last_use;
      };
      const auto oldest = std::ranges::min_element(entries, {}, age);
      if (age(*oldest) == std::numeric_limits<std::uint64_t>::max()) return;
      bytes -= oldest->second.bytes;
      entries.erase(oldest);
    }
  }

  FileCache disk;
  Bundles bundles;
  std::mutex mutex;
  Entries entries;
  std::uint64_t uses = 0;
  std::int64_t bytes = 0, max_bytes;
};

KernelImages::KernelImages(FileCache disk, Bundles bundles, std::int64_t max_bytes)
    : store_(std::make_unique<Store>(std::move(disk), std::move(bundles), max_bytes)) {}
KernelImages::~KernelImages() = default;

std::int64_t KernelImages::bytes() const {
  const std::lock_guard lock(store_->mutex);
  return store_->bytes;
}

std::shared_ptr<const KernelImage> KernelImages::get(const KernelSource& source,
                                                     const std::string& architecture) {
  const std::string key = key_of(source, architecture);
  std::promise<std::shared_ptr<const KernelImage>> promise;
  ImageFuture future;
  {
    const std::lock_guard lock(store_->mutex);
    const auto [found, is_new] = store_->entries.try_emplace(key);
    found->second.last_use = ++store_->uses;
    if (is_new)
      found->second.image = promise.get_future().share();
    else
      future = found->second.image;
  }
  if (future.valid()) return future.get();
  std::shared_ptr<const KernelImage> image;
  try {
    image = make_image(source, architecture, key, store_->disk, store_->bundles);
  } catch (...) {
    // Waiting threads get the same exception; later callers try again.
    const std::lock_guard lock(store_->mutex);
    store_->entries.erase(key);
    promise.set_exception(std::current_exception());
    throw;
  }
  promise.set_value(image);
  const std::lock_guard lock(store_->mutex);
  store_->account(key, *image);
  return image;
}

std::string cubin_directory() {
  const std::string& directory = settings().cache_directory;
  return directory.empty() ? directory : directory + "/cubin";
}

KernelImages& kernel_images() {
  static KernelImages images{FileCache(cubin_directory()), Bundles(bundle_files())};
  return images;
}

PackedItem packed(const KernelSource& source, const std::string& architecture,
                  const KernelImage& image) {
  return {key_of(source, architecture), source.name, join(image)};
}

std::string architecture_of(int compute_capability) {
  return fmt::format("sm_{}{}", compute_capability, compute_capability == 90 ? "a" : "");
}

Resources resources_of(const std::string& log) {
  Resources resources;
  for (std::size_t at = 0; (at = log.find(" registers", at)) != std::string::npos; ++at)
    resources.registers = std::max(resources.registers, number_before(log, at));
  for (std::size_t at = 0; (at = log.find(" bytes spill", at)) != std::string::npos; ++at)
    resources.spilled_bytes = std::max(resources.spilled_bytes, number_before(log, at));
  for (std::size_t at = 0; (at = log.find(" bytes stack frame", at)) != std::string::npos; ++at)
    resources.local_bytes = std::max(resources.local_bytes, number_before(log, at));
  return resources;
}

}  // namespace ashlar::cuda
