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

// Several, so that threads with objects of their own seldom meet.
Shard& shard_of(const void* object) {
  static std::array<Shard, 16>& shards = *new std::array<Shard, 16>;  // outlives static destructors
  return shards[(reinterpret_cast<std::uintptr_t>(object) >> 6) % shards.size()];
}

// By text: equal literals of two source files are two addresses where the linker does not merge
// them, as in sanitized builds.
bool is_same(const char* a, const char* b) { return a == b || std::strcmp(a, b) == 0; }

}  // namespace

void enlist(const void* object, const char* type) {
  Shard& shard = shard_of(object);
  const std::scoped_lock lock(shard.mutex);
  shard.types[object] = type;
}

bool is_listed(const void* object, const char* type) {
  Shard& shard = shard_of(object);
  const std::shared_lock lock(shard.mutex);
  const auto found = shard.types.find(object);
  return found != shard.types.end() && is_same(found->second, type);
}

bool strike(const void* object, const char* type) {
  Shard& shard = shard_of(object);
  const std::scoped_lock lock(shard.mutex);
  const auto found = shard.types.find(object);
  if (found == shard.types.end() || !is_same(found->second, type)) return false;
  shard.types.erase(found);
  return true;
}

}  // namespace ashlar::cudnn
