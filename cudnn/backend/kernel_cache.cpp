// Kernel caches. Kernels are kept by the library itself, for all plans of the process and on disk:
// a cache is a token that clients pass along.
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
      // Nothing that a program has to keep: what was compiled before is found again by itself.
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
           "CUDNN_ATTR_KERNEL_CACHE_JSON_REPRESENTATION: got text of another library or version, "
           "expected "
           "what this library gave");
  }
  return std::make_shared<KernelCache>();
}

}  // namespace ashlar::cudnn
