// What a kernel compiled for the emulator and the driver that runs it know of each other. Included
// by both; the kernel's side has no standard library.
#pragma once

namespace emulated {

struct Triple {
  unsigned x, y, z;
};

// The meetings of a warp's lanes; all lanes of one must have come for the same purpose.
enum class WarpOp : int { sync, shuffle, vote, match, reduce, load, store, product };

// What a lane takes from a meeting: who was there, and with what.
struct WarpValues {
  unsigned lanes;
  const unsigned long long* values;  // of 32 lanes
};

// One per loaded image. The driver writes it whenever another thread of the launch takes over, so
// that built-in variables are plain variables.
struct State {
  Triple thread, block, block_dim, grid_dim;
  int lane;
  unsigned char* shared_memory;
  long long clock;
  // Waits until the lanes of `mask` that have not left are there.
  WarpValues (*warp_sync)(WarpOp purpose, unsigned mask, unsigned long long value);
  // Barrier `id` of the block for `threads` threads (0: all that have not left). Gives how many
  // came with a predicate that is not zero.
  int (*barrier)(int id, int threads, int predicate, bool waits);
  // Lets the others go first: for loops that wait for memory to change.
  void (*yield)();
  unsigned (*live_lanes)();
  void (*trap)(const char* reason);
};

// The same for clusters of blocks.
struct ClusterState {
  void (*barrier)();
  // Where another block has what is at `address` in this block's shared memory.
  void* (*address)(void* address, unsigned rank);
};

// Numbers that matrix units multiply. Sums are int for s8 and u8, double for f64, float otherwise.
enum class MmaType : int { f16, bf16, tf32, e4m3, e5m2, s8, u8, f64 };

// A product D = A B (+ D) of wgmma: A is 64 x K, 32 bytes along K, B is K x n.
struct WarpgroupMma {
  MmaType a, b;
  int n;
  unsigned long long a_matrix, b_matrix;  // descriptors
  const unsigned* a_registers;            // null: A is in shared memory
  bool a_is_mn_major, b_is_mn_major;
  bool keeps;  // adds to D
  bool negates_a, negates_b;
  void* d;  // n / 2 sums of the thread
};
// A product D = A B + C of mma.sync by a warp.
struct WarpMma {
  MmaType a, b;
  int m, n, k;
  void* d;
  const void *a_registers, *b_registers, *c;
};

// cp.async: of `bytes`, the first `present` are read, the others are zeros.
struct ThreadCopy {
  void* shared;
  const void* global;
  int bytes, present;
};

// What sm_80 and sm_90a have beyond the functions of CUDA. The driver fills in what the image has
// room for.
struct TensorState {
  unsigned bytes;  // of this struct
  unsigned (*shared_address)(const void* pointer);
  void* (*shared_pointer)(unsigned address);
  unsigned (*cluster_rank)();
  unsigned (*cluster_blocks)();
  void (*cluster_sync)(bool arrives, bool waits);
  // Barriers in shared memory. `rank`: of the block that has it, -1: this one.
  void (*mbarrier_init)(void* barrier, unsigned count);
  void (*mbarrier_end)(void* barrier);
  void (*mbarrier_change)(void* barrier, int rank, unsigned arrivals, int bytes);
  bool (*mbarrier_wait)(void* barrier, unsigned parity, bool until_complete);
  // Copies between global and shared memory.
  void (*tensor_load)(void* shared, const void* map, void* barrier, const int* coordinates,
                      int rank, const unsigned short* offsets, unsigned multicast);
  void (*tensor_store)(const void* map, const void* shared, const int* coordinates, int rank);
  void (*bulk_load)(void* shared, const void* global, unsigned bytes, void* barrier,
                    unsigned multicast);
  void (*bulk_store)(void* global, const void* shared, unsigned bytes);
  void (*bulk_commit)();
  void (*bulk_wait)(int pending, bool only_read);
  // By all lanes of a warp.
  void (*multiply_warpgroup)(const WarpgroupMma& product);
  void (*multiply_warp)(const WarpMma& product);
  void (*load_matrix)(unsigned* registers, const void* row, int count, bool transposed);
  void (*store_matrix)(void* row, const unsigned* registers, int count, bool transposed);
  void (*wgmma_commit_group)();
  void (*wgmma_wait_group)(int pending);
  // A thread's own copies to shared memory.
  void (*thread_copy)(const ThreadCopy& copy);
  void (*thread_commit)();
  void (*thread_wait)(int pending);
};

// `emulated_image` of an image.
struct Image {
  State* state;
  const char* architecture;
  unsigned char *shared_begin, *shared_end;  // its static shared memory
};

// `emulated_NAME` of an image, one per kernel.
struct Kernel {
  static constexpr int kMaxParameters = 64;
  void (*run)(void* const* parameters);  // one thread
  int most_threads;
  int parameters;
  unsigned parameter_bytes[kMaxParameters];
};

}  // namespace emulated
