// Tile scheduler of fused attention. A CTA of the persistent grid begins with the tile of its own
// number. Static: it goes on in steps of the grid. Dynamic (kDynamic), where tiles differ in
// length: the producer takes the number of the next tile from a counter in global memory,
// args.tile_counter, and passes it on to the consumers. Requires sm90/attention_buffers.cuh.
#include "lib/ptx_grid_dependency.cuh"

// A tile of kBlockM rows of one head.
struct AttentionTile {
  int row, head, batch;
};

// Tiles are ordered by sections of args.section heads whose K and V stay in L2 together, within a
// section from the last rows, which see most keys if attention is causal, to the first.
__device__ inline AttentionTile tile_at(const Args& args, int number) {
  const int tiles_m = (int)args.tiles_m;
  const int section = number / (tiles_m * (int)args.section);
  const int first_head = section * (int)args.section;
  const int heads = min((int)args.section, (int)args.all_heads - first_head);
  const int of_section = number - first_head * tiles_m;
  const int descending = of_section / heads;
  const int head = first_head + of_section - descending * heads;
  AttentionTile tile;
  tile.row = (tiles_m - 1 - descending) * kBlockM;
  tile.batch = head / (int)args.heads;
  tile.head = head - tile.batch * (int)args.heads;
  return tile;
}

__device__ inline int first_tile() { return (int)blockIdx.x; }
__device__ inline int tile_count(const Args& args) {
  return (int)args.tiles_m * (int)args.all_heads;
}

// By the producer thread: the tile behind tile `number`, which it takes before it loads that one.
// The previous launch has reset the counter.
__device__ inline int take_tile(const Args& args, int number) {
  if constexpr (kDynamic) {
    if (number == first_tile()) wait_on_dependent_grids();
    return (int)gridDim.x + atomicAdd((int*)args.tile_counter, 1);
  } else {
    return number + (int)gridDim.x;
  }
}
__device__ inline void announce_tile(AttentionBuffers& buffers, int number) {
  if constexpr (kDynamic) {
    buffers.tiles.producer_acquire();
    buffers.tile_numbers[buffers.tiles.stage] = number;
    buffers.tiles.producer_commit();
    buffers.tiles.next();
  }
}
// By the consumers, behind tile `number`.
__device__ inline int next_tile(AttentionBuffers& buffers, int number) {
  if constexpr (kDynamic) {
    buffers.tiles.consumer_wait();
    // The lane that releases the number is the one that reads it.
    const int own = threadIdx.x % 32 == 0 ? buffers.tile_numbers[buffers.tiles.stage] : 0;
    const int next = __shfl_sync(~0u, own, 0);
    buffers.tiles.consumer_release(buffers.tiles.stage);
    buffers.tiles.next();
    return next;
  } else {
    return number + (int)gridDim.x;
  }
}
