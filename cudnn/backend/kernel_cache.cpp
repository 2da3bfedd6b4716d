// KERNEL_CACHE descriptors. The library caches kernels itself, in the process and on disk; the
// descriptor is a token that clients pass along.
#include <nlohmann/json.hpp>

#include "backend/finalize.hpp"
#include "backend/operation_graph.hpp"
#include "core/failure.hpp"

namespace ashlar::cudnn {

namespace {

using nlohmann::json;
constexpr const char* kCacheFormat = "ashlar-cudnn-kernel-cache";

struct KernelCache : Finished {
  std::optional<AttributeValue> computed(cudnnBackendAttributeName_t name) const override {
    switch (name) {
      case CUDNN_ATTR_KERNEL_CACHE_JSON_REPRESENTATION:
        return json{{"format", kCacheFormat}, {"version", 1}}.dump();
      // Always cached, as far as the client is concerned: the library finds compiled kernels
      // itself.
      case CUDNN_ATTR_KERNEL_CACHE_IS_ENGINECFG_KERNEL_CACHED: return std::vector<std::int64_t>{1};
      default: return {};
    }
  }
};

}  // namespace

FinishedRef finalize_kernel_cache(const Record& record) {
  if (record.has(CUDNN_ATTR_KERNEL_CACHE_JSON_REPRESENTATION)) {
    const json text =
        json::parse(record.text(CUDNN_ATTR_KERNEL_CACHE_JSON_REPRESENTATION), nullptr, false);
    if (!text.is_object() || text.value("format", "") != kCacheFormat)
      fail(CUDNN_STATUS_SERIALIZATION_VERSION_MISMATCH,
           "CUDNN_ATTR_KERNEL_CACHE_JSON_REPRESENTATION: got text of an unknown format, "
           "expected "
           "what this library gave");
  }
  return std::make_shared<KernelCache>();
}

}  // namespace ashlar::cudnn
