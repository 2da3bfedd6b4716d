// What a kernel compiled for the emulator and the driver that runs it know of each other. Included
// by both; the kernel's side has no standard library.
#pragma once

namespace emulated {

struct Triple {
  unsigned x, y, z;
};

// The meetings of a warp's lanes; all lanes of one must have come for the same purpose.
enum class Meeting : int { sync, shuffle, vote, match, reduce };

// What a lane takes from a meeting: who was there, and with what.
struct Met {
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
  Met (*meet)(Meeting purpose, unsigned mask, unsigned long long value);
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

// `emulated_image` of an image.
struct Image {
  State* state;
  const char* architecture;
  unsigned char *shared_begin, *shared_end;  // its static shared memory
};

// `emulated_NAME` of an image, one per kernel.
struct Kernel {
  static constexpr int kMostParameters = 64;
  void (*run)(void* const* parameters);  // one thread
  int most_threads;
  int parameters;
  unsigned parameter_bytes[kMostParameters];
};

}  // namespace emulated
