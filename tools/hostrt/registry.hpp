// Registry of live objects of one type, so that a destroyed or foreign handle is detected without
// dereferencing it.
#pragma once

#include <map>
#include <memory>
#include <mutex>

namespace ashlar::hostrt {

template <typename T>
class Registry {
 public:
  // Never destroyed: programs destroy handles in their own static destructors.
  static Registry& instance() {
    static auto* registry = new Registry;
    return *registry;
  }

  T* add(std::shared_ptr<T> object) {
    const std::lock_guard lock(mutex_);
    T* handle = object.get();
    objects_.emplace(handle, std::move(object));
    return handle;
  }

  // Null for an invalid handle. The returned shared_ptr keeps the object alive.
  std::shared_ptr<T> find(T* handle) {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(handle);
    return found == objects_.end() ? nullptr : found->second;
  }

  bool remove(T* handle) {
    const std::lock_guard lock(mutex_);
    return objects_.erase(handle) == 1;
  }

  void clear() {
    const std::lock_guard lock(mutex_);
    objects_.clear();
  }

 private:
  std::mutex mutex_;
  std::map<T*, std::shared_ptr<T>> objects_;
};

}  // namespace ashlar::hostrt
