// Packs: kernels compiled ahead of time, in one file.
//
// All numbers are 8 bytes, little-endian. The file: a magic line; the file's own size; how many
// entries; a digest of the index; architecture and version of Ashlar, 32 bytes each; the index, one
// row of 128 bytes per entry, sorted by key; the entries. A row: the key's digest as text (32
// bytes), the name (64 bytes), offset and size of the entry and its digest, and eight zero bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ashlar::cuda {

// What goes into a pack: bytes under a key of any length, and a name for people.
struct PackedItem {
  std::string key, name, bytes;
};
// The whole file. Items with equal keys are one.
std::string encode_bundle(const std::string& architecture, std::vector<PackedItem> items);
// Of the magic line to the end of the index, as the header keeps it.
std::uint64_t digest_of_index(std::string head);

// One opened pack. The index is read and checked at once, entries when they are asked for.
class Bundle {
 public:
  struct Row {
    std::string digest, name;
    std::uint64_t offset = 0, bytes = 0, check = 0;
  };
  // Reads `bytes` bytes from `offset` on; false when they cannot be had.
  using Read = std::function<bool(std::uint64_t offset, std::size_t bytes, char* to)>;

  // Throw Error(io) with a sentence for what is no pack, or is damaged.
  static Bundle open(const std::string& path);
  static Bundle from(std::uint64_t file_bytes, Read read);

  const std::string& architecture() const { return architecture_; }
  const std::string& version() const { return version_; }
  const std::vector<Row>& rows() const { return rows_; }
  // Null when the pack has no such entry. `digest`: FileCache::file_name of the key.
  const Row* find(std::string_view digest) const;
  std::string read(const Row& row) const;  // throws Error(io) when it is damaged

 private:
  Read read_;
  std::string architecture_, version_;
  std::vector<Row> rows_;
};

// Packs that are searched one after the other. One that cannot be used is said so in the log, once,
// and is left out.
class Bundles {
 public:
  Bundles() = default;
  explicit Bundles(const std::vector<std::string>& files);
  std::optional<std::string> get(std::string_view key) const;
  std::size_t count() const { return packs_.size(); }

 private:
  struct Named {
    std::string path;
    Bundle bundle;
  };
  std::vector<Named> packs_;
};

// The files of ASHLAR_BUNDLE, then every *.pack in the folder "packs" of the cache directory and in
// share/ashlar/packs of the place where Ashlar is installed. Folders that others may write to are
// passed over.
std::vector<std::string> bundle_files();

}  // namespace ashlar::cuda
