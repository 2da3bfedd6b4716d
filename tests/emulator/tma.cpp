// Emulated TMA: asynchronous tensor and bulk copies between global and shared memory. Usually they
// complete immediately. In reverse order (options) they are delayed until no thread can proceed
// without them, so that a missing wait reads stale data or overwrites a pending store.
#include <algorithm>
#include <cstring>
#include <functional>
#include <map>

#include "memory.hpp"
#include "options.hpp"
#include "running.hpp"
#include "tensor_map.hpp"

namespace emulated {

namespace {

using Bytes = std::vector<unsigned char>;

struct Load {
  std::vector<Block*> to;
  unsigned shared, barrier;
  int swizzle;
  std::function<Bytes()> read;
};
// A store of one thread; completes when the thread waits.
struct Store {
  const Block* block;
  int thread;
  long long group;
  std::function<void()> run;  // empty: complete
};
std::vector<Load> loads;
std::vector<Store> stores;
std::map<std::pair<const Block*, int>, long long> commits;  // committed groups per thread

// 32-, 64- or 128-byte swizzle: XORs the 16-byte chunk index with the address bits above the lowest
// 7.
unsigned swizzled(unsigned address, int swizzle) {
  const unsigned mask = (1u << swizzle) - 1;
  return address ^ (address >> 7 & mask) << 4;
}

std::string perform(const Load& load) {
  const Bytes bytes = load.read();
  const auto count = static_cast<unsigned>(bytes.size());
  for (Block* block : load.to) {
    if (block->live == 0) return "the CTA exits before a copy to its shared memory completes";
    if (is_read_by_wgmma(*block, load.shared, count))
      return "a copy overwrites shared memory that an outstanding wgmma still reads";
    for (unsigned at = 0; at < count; at += 16)
      std::memcpy(shared_bytes_at(*block, swizzled(load.shared + at, load.swizzle), 16),
                  bytes.data() + at, 16);
    const std::string error = change_mbarrier(*block, load.barrier, 0, -static_cast<int>(count));
    if (!error.empty()) return error;
  }
  return {};
}

void start(Load load, unsigned bytes) {
  // Checks the destination at issue time.
  for (Block* block : load.to) shared_bytes_at(*block, load.shared, bytes);
  if (load.barrier % 8 != 0) stop("an mbarrier address is not a multiple of 8");
  if (options().reverse) {
    loads.push_back(std::move(load));
    return;
  }
  if (const std::string error = perform(load); !error.empty()) stop(error);
}

void start_store(std::function<void()> run) {
  if (!options().reverse) {
    run();
    run = nullptr;
  }
  stores.push_back({now.block, now.current, -1, std::move(run)});
}

std::vector<Block*> receivers(unsigned multicast) {
  if (multicast == 0) return {now.block};
  std::vector<Block*> blocks;
  for (unsigned rank = 0; multicast >> rank != 0; ++rank)
    if (multicast >> rank & 1) blocks.push_back(&block_of_cluster(rank));
  return blocks;
}

// --- tensors

TensorMap checked_map(const void* from, const int* corner, int rank, bool is_im2col) {
  TensorMap map;
  if (reinterpret_cast<std::uintptr_t>(from) % 64 != 0)
    stop("TMA: the address of a tensor map is not a multiple of 64");
  if (!read_tensor_map(from, map)) stop("TMA: the tensor map was not encoded by the driver");
  if (map.rank != rank) stop("TMA: the rank differs from that of the tensor map");
  if (map.is_im2col != is_im2col)
    stop("TMA: the mode (tiled, im2col) differs from that of the tensor map");
  // A real H200 reports an illegal instruction.
  if (corner[0] * static_cast<int>(bytes_of(map.type)) % 16 != 0)
    stop("TMA: the innermost coordinate is not a multiple of 16 bytes");
  if (map.swizzle != 0 && map.row_bytes() != 16u << map.swizzle)
    stop("TMA: box rows shorter than the swizzle are not emulated");
  return map;
}

// `count` elements along the innermost axis from `coordinates` on; any of them may be out of
// bounds.
struct Row {
  std::array<std::int64_t, kMostRank> coordinates;
  unsigned count;
};
// Calls copy(pointer, byte offset of the first in-bounds element, bytes).
template <class Copy>
void for_existing(const TensorMap& map, const Row& row, const Copy& copy) {
  std::uint64_t address = map.address;
  for (std::size_t axis = 1; axis < static_cast<std::size_t>(map.rank); ++axis) {
    const std::int64_t at = row.coordinates[axis];
    if (at < 0 || at >= static_cast<std::int64_t>(map.dims[axis])) return;
    address += static_cast<std::uint64_t>(at) * map.strides[axis];
  }
  const std::int64_t begin = std::max<std::int64_t>(row.coordinates[0], 0),
                     end = std::min<std::int64_t>(row.coordinates[0] + row.count,
                                                  static_cast<std::int64_t>(map.dims[0]));
  if (begin >= end) return;
  address += static_cast<std::uint64_t>(begin) * map.strides[0];
  const auto bytes = static_cast<std::size_t>(end - begin) * map.strides[0];
  copy(reinterpret_cast<unsigned char*>(address),
       static_cast<std::size_t>(begin - row.coordinates[0]) * map.strides[0], bytes);
}

// The rows of a box in shared-memory order.
std::vector<Row> tiled_rows(const TensorMap& map, const std::array<int, kMostRank>& coordinates) {
  std::vector<Row> rows;
  std::array<unsigned, kMostRank> at{};
  const auto rank = static_cast<std::size_t>(map.rank);
  for (;;) {
    Row row{{}, map.box[0]};
    for (std::size_t axis = 0; axis < rank; ++axis)
      row.coordinates[axis] =
          coordinates[axis] + static_cast<std::int64_t>(at[axis]) * map.element_strides[axis];
    rows.push_back(row);
    std::size_t axis = 1;
    while (axis < rank && ++at[axis] == map.box_elements(static_cast<int>(axis))) at[axis++] = 0;
    if (axis >= rank) return rows;
  }
}
// The pixels of the im2col bounding box from `coordinates` on, along W, then H, D, N, each shifted
// by the filter offsets.
std::vector<Row> im2col_rows(const TensorMap& map, const std::array<int, kMostRank>& coordinates,
                             const std::array<unsigned short, kMostSpatial>& offsets) {
  std::vector<Row> rows;
  const auto rank = static_cast<std::size_t>(map.rank);
  std::array<std::int64_t, kMostRank> at{};
  std::copy_n(coordinates.begin(), rank, at.begin());
  for (unsigned pixel = 0; pixel < map.pixels; ++pixel) {
    Row row{at, map.channels};
    for (std::size_t axis = 1; axis + 1 < rank; ++axis) row.coordinates[axis] += offsets[axis - 1];
    rows.push_back(row);
    std::size_t axis = 1;
    for (; axis + 1 < rank; ++axis) {
      at[axis] += map.element_strides[axis];
      if (at[axis] < static_cast<std::int64_t>(map.dims[axis]) + map.upper[axis - 1]) break;
      at[axis] = map.lower[axis - 1];
    }
    if (axis + 1 == rank) ++at[axis];
  }
  return rows;
}

// A real H200 reports an illegal instruction. Images past the last one read as zeros.
void check_first_pixel(const TensorMap& map, const std::array<int, kMostRank>& coordinates) {
  for (std::size_t axis = 1; axis + 1 < static_cast<std::size_t>(map.rank); ++axis)
    if (coordinates[axis] < map.lower[axis - 1] ||
        coordinates[axis] >= static_cast<std::int64_t>(map.dims[axis]) + map.upper[axis - 1])
      stop("TMA im2col: the first pixel is outside the bounding box");
}

void check_global(const TensorMap& map, const std::vector<Row>& rows) {
  for (const Row& row : rows)
    for_existing(map, row, [](const unsigned char* at, std::size_t, std::size_t bytes) {
      if (!is_inside(reinterpret_cast<std::uint64_t>(at), bytes))
        stop("TMA: the box is outside GPU memory");
    });
}

// Conversions by TMA: tf32 rounds to 10 bits of fraction, nearest even; ftz flushes subnormals to
// 0.
void convert(TensorType type, Bytes& bytes) {
  const bool rounds = type == TensorType::tf32 || type == TensorType::tf32_ftz;
  const bool flushes = type == TensorType::f32_ftz || type == TensorType::tf32_ftz;
  if (!rounds && !flushes) return;
  for (std::size_t at = 0; at < bytes.size(); at += 4) {
    std::uint32_t word = 0;
    std::memcpy(&word, bytes.data() + at, 4);
    const std::uint32_t exponent = word & 0x7f800000u;
    if (exponent == 0x7f800000u) continue;
    if (flushes && exponent == 0) word &= 0x80000000u;
    if (rounds) word = (word + 0xfffu + (word >> 13 & 1)) & ~0x1fffu;
    std::memcpy(bytes.data() + at, &word, 4);
  }
}

Bytes read_rows(const TensorMap& map, const std::vector<Row>& rows) {
  const std::size_t row_bytes = map.row_bytes();
  Bytes bytes(rows.size() * row_bytes);
  unsigned char* to = bytes.data();
  for (const Row& row : rows) {
    for_existing(map, row, [&](const unsigned char* from, std::size_t at, std::size_t count) {
      std::memcpy(to + at, from, count);
    });
    to += row_bytes;
  }
  convert(map.type, bytes);
  return bytes;
}

unsigned checked_tile(const void* shared) {
  const unsigned address = shared_address(shared);
  if (address % 128 != 0) stop("TMA: the shared-memory address is not a multiple of 128");
  return address;
}

void finish(Store& store) {
  if (store.run) store.run();
  store.run = nullptr;
}
bool is_own(const Store& store) { return store.block == now.block && store.thread == now.current; }

void check_bulk(unsigned shared, const void* global, unsigned bytes) {
  const auto address = reinterpret_cast<std::uint64_t>(global);
  if (shared % 16 != 0 || address % 16 != 0 || bytes % 16 != 0)
    stop("cp.async.bulk: addresses or size are not multiples of 16");
  if (!is_inside(address, bytes)) stop("cp.async.bulk: the range is outside GPU memory");
}

}  // namespace

void tensor_load(void* shared, const void* map_at, void* barrier, const int* coordinates, int rank,
                 const unsigned short* offsets, unsigned multicast) {
  const TensorMap map = checked_map(map_at, coordinates, rank, offsets != nullptr);
  std::array<int, kMostRank> at{};
  std::copy_n(coordinates, rank, at.begin());
  std::vector<Row> rows;
  if (offsets != nullptr) {
    std::array<unsigned short, kMostSpatial> by{};
    std::copy_n(offsets, rank - 2, by.begin());
    const unsigned limit = rank == 3 ? 1 << 16 : rank == 4 ? 1 << 8 : 1 << 5;
    for (const unsigned offset : by)
      if (offset >= limit) stop("TMA im2col: a filter offset is out of range");
    check_first_pixel(map, at);
    rows = im2col_rows(map, at, by);
  } else {
    rows = tiled_rows(map, at);
  }
  check_global(map, rows);
  const auto bytes = static_cast<unsigned>(rows.size()) * map.row_bytes();
  start({.to = receivers(multicast),
         .shared = checked_tile(shared),
         .barrier = shared_address(barrier),
         .swizzle = map.swizzle,
         .read = [map, rows = std::move(rows)] { return read_rows(map, rows); }},
        bytes);
}

void tensor_store(const void* map_at, const void* shared, const int* coordinates, int rank) {
  const TensorMap map = checked_map(map_at, coordinates, rank, false);
  std::array<int, kMostRank> at{};
  std::copy_n(coordinates, rank, at.begin());
  const unsigned from = checked_tile(shared);
  std::vector<Row> rows = tiled_rows(map, at);
  check_global(map, rows);
  shared_bytes_at(from, static_cast<unsigned>(rows.size()) * map.row_bytes());
  start_store([map, from, rows = std::move(rows), block = now.block] {
    Bytes row_bytes(map.row_bytes());
    unsigned address = from;
    for (const Row& row : rows) {
      for (unsigned piece = 0; piece < row_bytes.size(); piece += 16, address += 16)
        std::memcpy(row_bytes.data() + piece,
                    shared_bytes_at(*block, swizzled(address, map.swizzle), 16), 16);
      for_existing(map, row, [&](unsigned char* to, std::size_t first, std::size_t count) {
        std::memcpy(to, row_bytes.data() + first, count);
      });
    }
  });
}

void bulk_load(void* shared, const void* global, unsigned bytes, void* barrier,
               unsigned multicast) {
  const unsigned to = shared_address(shared);
  check_bulk(to, global, bytes);
  const auto* from = static_cast<const unsigned char*>(global);
  start({.to = receivers(multicast),
         .shared = to,
         .barrier = shared_address(barrier),
         .swizzle = 0,
         .read = [from, bytes] { return Bytes(from, from + bytes); }},
        bytes);
}

void bulk_store(void* global, const void* shared, unsigned bytes) {
  const unsigned from = shared_address(shared);
  check_bulk(from, global, bytes);
  shared_bytes_at(from, bytes);
  start_store([global, from, bytes, block = now.block] {
    std::memcpy(global, shared_bytes_at(*block, from, bytes), bytes);
  });
}

void bulk_commit() {
  const long long group = commits[{now.block, now.current}]++;
  for (Store& store : stores)
    if (is_own(store) && store.group < 0) store.group = group;
}

void bulk_wait(int pending, bool) {
  const long long last = commits[{now.block, now.current}] - 1 - pending;
  const auto is_done = [&](const Store& store) {
    return is_own(store) && store.group >= 0 && store.group <= last;
  };
  for (Store& store : stores)
    if (is_done(store)) finish(store);
  stores.erase(std::remove_if(stores.begin(), stores.end(), is_done), stores.end());
}

void clear_copies() {
  loads.clear();
  stores.clear();
  commits.clear();
}

bool complete_copies() {
  if (loads.empty()) return false;
  std::vector<Load> all;
  all.swap(loads);
  for (const Load& load : all) {
    const std::string error = now.error.empty() ? perform(load) : std::string();
    if (error.empty()) continue;
    now.error = error;
    now.is_over = true;
  }
  return true;
}

std::string unfinished_copies(const Block& block, int thread) {
  for (const Store& store : stores)
    if (store.block == &block && store.thread == thread)
      return "a thread exits without waiting for its bulk stores";
  return {};
}

}  // namespace emulated
