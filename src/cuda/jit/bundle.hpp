// Kernel bundles: archives of kernels compiled ahead of time.
//
// All integers are 8 bytes, little-endian. The file: a magic line; the file size; the number of
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

// An entry to bundle: bytes under a key of any length, and a human-readable name.
struct PackedItem {
  std::string key, name, bytes;
};
// The whole file. Items with equal keys are stored once.
std::string encode_bundle(const std::string& architecture, std::vector<PackedItem> items);
// Digest from the magic line to the end of the index, as stored in the header.
std::uint64_t digest_of_index(std::string head);

// An open bundle. The index is read and verified on opening, entries on access.
class Bundle {
 public:
  struct Row {
    std::string digest, name;
    std::uint64_t offset = 0, bytes = 0, check = 0;
  };
  // Reads `bytes` bytes at `offset`; false on failure.
  using Read = std::function<bool(std::uint64_t offset, std::size_t bytes, char* to)>;

  // Both throw Error(io) for a file that is not a bundle or is damaged.
  static Bundle open(const std::string& path);
  static Bundle from(std::uint64_t file_bytes, Read read);

  const std::string& architecture() const { return architecture_; }
  const std::string& version() const { return version_; }
  const std::vector<Row>& rows() const { return rows_; }
  // Null when the bundle has no such entry. `digest`: FileCache::file_name of the key.
  const Row* find(std::string_view digest) const;
  std::string read(const Row& row) const;  // throws Error(io) when the entry is damaged

 private:
  Read read_;
  std::string architecture_, version_;
  std::vector<Row> rows_;
};

// Bundles in search order. Unusable ones are reported once in the log and ignored.
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

// The files of ASHLAR_BUNDLE, then every *.bundle in the folder "bundles" of the cache directory
// and in share/ashlar/bundles of the installation prefix. Folders that other users may write to are
// ignored.
std::vector<std::string> bundle_files();

}  // namespace ashlar::cuda
