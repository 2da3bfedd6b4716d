// Interface between an emulated kernel and the emulated driver. Included by both; the kernel side
// has no standard library.
#pragma once

namespace emulated {

struct Triple {
  unsigned x, y, z;
};

// Kinds of warp collectives; all participating lanes must call the same kind.
enum class WarpOp : int { sync, shuffle, vote, match, reduce, load, store, product };

// Result of a warp collective: the participating lanes and their values.
struct WarpValues {
  unsigned lanes;
  const unsigned long long* values;  // 32 values
};

// One per loaded image. The driver updates it on every thread switch, so that built-in variables
// are plain variables.
struct State {
  Triple thread, block, block_dim, grid_dim;
  int lane;
  unsigned char* shared_memory;
  long long clock;
  // Warp collective: waits for all live lanes of `mask`.
  WarpValues (*warp_sync)(WarpOp purpose, unsigned mask, unsigned long long value);
  // Named barrier `id` for `threads` threads (0: all live threads). Returns the number of non-zero
  // predicates.
  int (*barrier)(int id, int threads, int predicate, bool waits);
  // Yields to other threads: for loops that poll memory.
  void (*yield)();
  unsigned (*live_lanes)();
  void (*trap)(const char* reason);
};

// The same for clusters.
struct ClusterState {
  void (*barrier)();
  // mapa: the address in CTA `rank` that corresponds to `address` in this CTA's shared memory.
  void* (*address)(void* address, unsigned rank);
};

// Operand types of tensor cores. Accumulators are int for s8 and u8, double for f64, float
// otherwise.
enum class MmaType : int { f16, bf16, tf32, e4m3, e5m2, s8, u8, f64 };

// wgmma: D = A B (+ D), A is 64 x K with 32 bytes along K, B is K x n.
struct WarpgroupMma {
  MmaType a, b;
  int n;
  unsigned long long a_matrix, b_matrix;  // descriptors
  const unsigned* a_registers;            // null: A is in shared memory
  bool a_is_mn_major, b_is_mn_major;
  bool keeps;  // scale-d: accumulates into D
  bool negates_a, negates_b;
  void* d;  // n / 2 accumulators per thread
};
// mma.sync of a warp: D = A B + C.
struct WarpMma {
  MmaType a, b;
  int m, n, k;
  void* d;
  const void *a_registers, *b_registers, *c;
};

// cp.async: reads the first `present` of `bytes`, zero-fills the rest.
struct ThreadCopy {
  void* shared;
  const void* global;
  int bytes, present;
};

// Instructions of sm_80 and sm_90a without a CUDA C++ function. The driver fills in what the image
// has room for.
struct TensorState {
  unsigned bytes;  // size of this struct
  unsigned (*shared_address)(const void* pointer);
  void* (*shared_pointer)(unsigned address);
  unsigned (*cluster_rank)();
  unsigned (*cluster_blocks)();
  void (*cluster_sync)(bool arrives, bool waits);
  // mbarriers. `rank`: the CTA that owns it, -1: this one.
  void (*mbarrier_init)(void* barrier, unsigned count);
  void (*mbarrier_end)(void* barrier);
  void (*mbarrier_change)(void* barrier, int rank, unsigned arrivals, int bytes);
  bool (*mbarrier_wait)(void* barrier, unsigned parity, bool until_complete);
  // TMA and bulk copies.
  void (*tensor_load)(void* shared, const void* map, void* barrier, const int* coordinates,
                      int rank, const unsigned short* offsets, unsigned multicast);
  void (*tensor_store)(const void* map, const void* shared, const int* coordinates, int rank);
  void (*bulk_load)(void* shared, const void* global, unsigned bytes, void* barrier,
                    unsigned multicast);
  void (*bulk_store)(void* global, const void* shared, unsigned bytes);
  void (*bulk_commit)();
  void (*bulk_wait)(int pending, bool only_read);
  // Tensor cores: called by all lanes of a warp.
  void (*multiply_warpgroup)(const WarpgroupMma& product);
  void (*multiply_warp)(const WarpMma& product);
  void (*load_matrix)(unsigned* registers, const void* row, int count, bool transposed);
  void (*store_matrix)(void* row, const unsigned* registers, int count, bool transposed);
  void (*wgmma_commit_group)();
  void (*wgmma_wait_group)(int pending);
  // cp.async.
  void (*thread_copy)(const ThreadCopy& copy);
  void (*thread_commit)();
  void (*thread_wait)(int pending);
};

// Exported by an image as `emulated_image`.
struct Image {
  State* state;
  const char* architecture;
  unsigned char *shared_begin, *shared_end;  // static shared memory
};

// Exported by an image as `emulated_NAME`, one per kernel.
struct Kernel {
  static constexpr int kMaxParameters = 64;
  void (*run)(void* const* parameters);  // runs one thread
  int most_threads;
  int parameters;
  unsigned parameter_bytes[kMaxParameters];
};

}  // namespace emulated
