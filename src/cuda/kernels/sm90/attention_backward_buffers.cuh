// Shared memory, pipelines and tiles of the backward pass of fused attention
// (attention_backward.cuh).
//
//   K, V    [kBlockN, kHeadDim]             loaded once
//   Q, dO   kStages x [kBlockM, kHeadDim]   with a pipeline each
//   dS      2 x [kBlockN, kBlockM]          written by the consumers: step n uses buffer n % 2
//   L, D    kStages x [kBlockM]             logarithms of the row sums, and delta; with Q and dO
//   mbarriers
//
// A matrix is a row of boxes, each 64 columns wide and swizzled over its row of 128 bytes. Requires
// lib/attention_mask.cuh.
#include "lib/elements.cuh"
#include "lib/pipeline.cuh"
#include "lib/pointwise.cuh"
#include "lib/rows.cuh"
#include "lib/ptx_opaque.cuh"
#include "lib/ptx_tma.cuh"

static const int kRow = 128;  // bytes
static const int kKeyBytes = kBlockN * 2 * kHeadDim, kQueryBytes = kBlockM * 2 * kHeadDim;
static const int kScoreBytes = kBlockN * 2 * kBlockM, kRowValueBytes = kBlockM * 4;

struct BackwardBuffers {
  uint8 *keys, *values;
  uint8* scores;
  BufferPipeline<kStages, kQueryBytes> queries, gradients;
  float *log_sums, *deltas;
  Mbarrier* key_barriers;  // of K and of V

  __device__ explicit BackwardBuffers(uint8* memory) {
    keys = memory;
    values = keys + kKeyBytes;
    uint8* const q = values + kKeyBytes;
    uint8* const d_o = q + kStages * kQueryBytes;
    scores = d_o + kStages * kQueryBytes;
    log_sums = (float*)(scores + 2 * kScoreBytes);
    deltas = log_sums + kStages * kBlockM;
    key_barriers = (Mbarrier*)(deltas + kStages * kBlockM);
    queries.begin(q, key_barriers + 2);
    gradients.begin(d_o, key_barriers + 2 + 2 * kStages);
  }
  // By one thread. Each warp that reads a stage arrives once on its empty barrier.
  __device__ void init() const {
    init_barrier(key_barriers, 1);
    init_barrier(key_barriers + 1, 1);
    queries.init(1, 4 * kConsumers);
    gradients.init(1, 4 * kConsumers);
  }
  // Of the stage that is read now.
  __device__ const float* own_log_sums() const { return log_sums + queries.stage * kBlockM; }
  __device__ const float* own_deltas() const { return deltas + gradients.stage * kBlockM; }
};

// kBlockN keys of one head, and the blocks of rows that see them.
struct KeyTile {
  int first_key, key_head, batch;
  RowMask mask;
  QueryBlocks blocks;

  // Ordered by sections of `section` key heads whose operands stay in L2 together, within a section
  // from the first keys, which most rows see if attention is causal, to the last.
  __device__ static KeyTile of_cta(const Args& args) {
    const int number = opaque((int)blockIdx.x);
    const int tiles_n = (int)args.tiles_n, all = (int)args.all_key_heads;
    const int section = number / (tiles_n * (int)args.section);
    const int first_head = section * (int)args.section;
    const int heads = min((int)args.section, all - first_head);
    const int of_section = number - first_head * tiles_n;
    const int block = of_section / heads;
    const int head = first_head + of_section - block * heads;
    const int batch = head / (int)args.key_heads;
    const RowMask mask(args, batch);
    return {block * kBlockN, head - batch * (int)args.key_heads, batch, mask,
            mask.query_blocks<kBlockM, kBlockN>(block * kBlockN)};
  }
  __device__ bool needs_mask(int block) const {
    return mask.hides<kBlockM, kBlockN>(block * kBlockM, first_key);
  }
};
