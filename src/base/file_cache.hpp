// A content-addressed file cache shared by any number of processes. Entries are named by the digest
// of their key, written to a temporary file, renamed into place and verified when read. Correctness
// needs no lock; BuildLock only avoids duplicate work.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ashlar {

class FileCache {
 public:
  // `directory` is created by the first put() with mode 0700. A directory that another user owns or
  // can write to is not used. An empty path disables the cache.
  explicit FileCache(std::string directory);

  // The bytes stored under `key`; nullopt if there are none or they are damaged. `key` may be any
  // text: its digest names the file, which also stores the whole key.
  std::optional<std::string> get(std::string_view key) const;
  // Returns false and logs at level info if the entry cannot be written (disk full, read-only). The
  // only consequence is that it is built again next time.
  bool put(std::string_view key, std::string_view bytes) const;

  // Held while building an entry that takes long: other processes that want to build it block until
  // it is released, and then find the entry with get(). Returns null at once if the file system has
  // no locks.
  class BuildLock;
  std::shared_ptr<BuildLock> lock_for_build(std::string_view key) const;

  struct Health {
    std::string trouble;  // why entries cannot be stored; empty if they can
    std::int64_t entries = 0, bytes = 0;
    std::vector<std::string> damaged;  // paths
  };
  // Reads every entry; writes one and removes it.
  Health inspect() const;

  const std::string& directory() const { return directory_; }
  // Why the directory is not used; empty if it is.
  const std::string& refusal() const { return refusal_; }
  static std::string file_name(std::string_view key);

 private:
  bool prepare() const;
  std::string directory_, refusal_;
};

}  // namespace ashlar
