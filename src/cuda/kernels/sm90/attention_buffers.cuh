// Shared memory and pipelines of fused attention (attention_forward.cuh).
//
//   Q   kConsumers x [64, kHeadDim]     a slot per consumer warpgroup, loaded once per tile
//   K   kStages x [kBlockN, kHeadDim]
//   V   kStages x [kBlockN, kValueDim]  a pipeline of its own
//   mbarriers, numbers of tiles (attention_scheduler.cuh)
//
// A matrix is a row of TMA boxes, each kKeyBox (of Q and K) or kValueBox columns wide and swizzled
// over its row of 128 or 64 bytes. Requires lib/attention_mask.cuh.
#include "lib/elements.cuh"
#include "lib/pipeline.cuh"
#include "lib/pointwise.cuh"
#include "lib/rows.cuh"
#include "lib/ptx_tma.cuh"

static const int kBlockM = 64 * kConsumers;
static const int kTileStages = 2;  // tiles that the producer is ahead of the consumers
static const int kKeyRow = 2 * kKeyBox, kValueRow = 2 * kValueBox;  // bytes
static const int kQueryBytes = 64 * 2 * kHeadDim;                   // of one warpgroup
static const int kKeyBytes = kBlockN * 2 * kHeadDim, kValueBytes = kBlockN * 2 * kValueDim;

struct AttentionBuffers {
  uint8* queries;
  Mbarrier* query_barriers;  // full and empty of each consumer warpgroup
  Mbarrier* order;
  Pipeline<kTileStages> tiles;
  int* tile_numbers;
  BufferPipeline<kStages, kKeyBytes> keys;
  BufferPipeline<kStages, kValueBytes> values;

  __device__ explicit AttentionBuffers(uint8* memory) {
    queries = memory;
    uint8* const k = queries + kConsumers * kQueryBytes;
    uint8* const v = k + kStages * kKeyBytes;
    Mbarrier* const barriers = (Mbarrier*)(v + kStages * kValueBytes);
    keys.begin(k, barriers);
    values.begin(v, barriers + 2 * kStages);
    query_barriers = barriers + 4 * kStages;
    order = query_barriers + 2 * kConsumers;
    tiles.begin(order + kConsumers);
    tile_numbers = (int*)(order + kConsumers + 2 * kTileStages);
  }
  // By one thread. Each warp that reads a buffer arrives once on its empty barrier.
  __device__ void init() const {
    keys.init(1, 4 * kConsumers);
    values.init(1, 4 * kConsumers);
    tiles.init(1, 4 * kConsumers);
    for (int group = 0; group < kConsumers; ++group) {
      init_barrier(query_barriers + 2 * group, 1);
      init_barrier(query_barriers + 2 * group + 1, 4);
      init_barrier(order + group, 4);
    }
  }
  __device__ uint8* query_buffer(int group) const { return queries + group * kQueryBytes; }
  // One stage.
  __device__ Pipeline<1> query_pipeline(int group) const {
    Pipeline<1> result;
    result.begin(query_barriers + 2 * group);
    return result;
  }
};
