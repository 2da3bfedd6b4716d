#include "core/objects.hpp"

#include <array>
#include <cstdint>
#include <mutex>
#include <shared_mutex>
#include <string_view>
#include <unordered_map>

namespace ashlar::cudnn {

namespace {

struct Shard {
  std::shared_mutex mutex;
  std::unordered_map<const void*, std::string_view> types;
};

// Several, so that threads with objects of their own seldom meet.
Shard& shard_of(const void* object) {
  static std::array<Shard, 16>& shards = *new std::array<Shard, 16>;  // outlives static destructors
  return shards[(reinterpret_cast<std::uintptr_t>(object) >> 6) % shards.size()];
}

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
  return found != shard.types.end() && found->second == type;
}

bool strike(const void* object, const char* type) {
  Shard& shard = shard_of(object);
  const std::scoped_lock lock(shard.mutex);
  const auto found = shard.types.find(object);
  if (found == shard.types.end() || found->second != type) return false;
  shard.types.erase(found);
  return true;
}

}  // namespace ashlar::cudnn
