#include "core/objects.hpp"

#include <array>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

namespace ashlar::cudnn {

namespace {

struct Shard {
  std::shared_mutex mutex;
  std::unordered_map<const void*, const char*> types;
};

// Sharded, so that threads which use separate objects rarely contend for a mutex.
Shard& shard_of(const void* object) {
  static std::array<Shard, 16>& shards = *new std::array<Shard, 16>;  // outlives static destructors
  return shards[(reinterpret_cast<std::uintptr_t>(object) >> 6) % shards.size()];
}

// Compares text: the linker does not always merge equal literals of two translation units
// (sanitizer builds do not).
bool is_same(const char* a, const char* b) { return a == b || std::strcmp(a, b) == 0; }

}  // namespace

void register_object(const void* object, const char* type) {
  Shard& shard = shard_of(object);
  const std::scoped_lock lock(shard.mutex);
  shard.types[object] = type;
}

bool is_registered(const void* object, const char* type) {
  Shard& shard = shard_of(object);
  const std::shared_lock lock(shard.mutex);
  const auto found = shard.types.find(object);
  return found != shard.types.end() && is_same(found->second, type);
}

bool unregister_object(const void* object, const char* type) {
  Shard& shard = shard_of(object);
  const std::scoped_lock lock(shard.mutex);
  const auto found = shard.types.find(object);
  if (found == shard.types.end() || !is_same(found->second, type)) return false;
  shard.types.erase(found);
  return true;
}

}  // namespace ashlar::cudnn
