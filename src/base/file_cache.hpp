// Files that any number of processes share: named by what they were made from, written beside and
// renamed into place, checked when read. No lock is needed for that; one only saves work.
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
  // Under `directory`, which is made on the first put (mode 0700). A directory that another user
  // owns or may write to is not used. Empty: nothing is ever kept.
  explicit FileCache(std::string directory);

  // The bytes stored under `key`; nothing when there are none or they are damaged. `key` may be any
  // text: its digest names the file, and the file holds it whole.
  std::optional<std::string> get(std::string_view key) const;
  // False, with a line in the log at level info, where the disk is full or may not be written: what
  // was to be kept is only made again next time.
  bool put(std::string_view key, std::string_view bytes) const;

  // Held while an entry that takes long is being made: whoever else wants to make it waits for the
  // first to be done, and finds it with get(). Null, at once, where the file system has no locks.
  class BuildLock;
  std::shared_ptr<BuildLock> lock_for_build(std::string_view key) const;

  struct Health {
    std::string trouble;  // why nothing can be kept; empty when it can
    std::int64_t entries = 0, bytes = 0;
    std::vector<std::string> damaged;  // paths
  };
  // Reads every entry; writes one and removes it.
  Health inspect() const;

  const std::string& directory() const { return directory_; }
  // Why the directory is not used; empty when it is.
  const std::string& refusal() const { return refusal_; }
  static std::string file_name(std::string_view key);

 private:
  bool prepare() const;
  std::string directory_, refusal_;
};

}  // namespace ashlar
