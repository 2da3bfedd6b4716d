// Fused attention on Hopper (FlashAttention-3): TMA, wgmma, warp-specialised and persistent.
#include <algorithm>

#include "base/ceil_div.hpp"
#include "cuda/engines/channel_axes.hpp"
#include "cuda/engines/engines.hpp"
#include "cuda/engines/sm90/attention_operands.hpp"
#include "cuda/engines/sm90/attention_tile.hpp"
#include "cuda/engines/sm90/gemm_tile.hpp"
#include "cuda/engines/tile_cost.hpp"
#include "cuda/engines/unaligned_fallback.hpp"
#include "cuda/jit/kernel_text.hpp"
#include "cuda/text/program_text.hpp"
#include "cuda/text/spec_text.hpp"
#include "cuda/text/wgmma_text.hpp"

namespace ashlar::cuda {

namespace {

using Op = AttentionForward;

constexpr std::int64_t kTileCounterBytes = 4;  // of the dynamic tile scheduler

// The exponent has a positive factor only; other scales multiply the scores.
bool scales_scores(const AttentionProblem& problem) {
  return problem.has(Op::scale_tensor) || !(problem.op.scale.value_or(1) > 0);
}

// Heads, in the order of tiles, whose K and V stay in L2 together.
std::int64_t heads_of_section(const AttentionProblem& problem) {
  constexpr std::int64_t kL2Bytes = 32 << 20;
  const std::int64_t of_head = 2 * problem.keys * (problem.head_dim + problem.value_dim);
  const std::int64_t group = problem.heads / std::min(problem.key_heads, problem.value_heads);
  return std::clamp<std::int64_t>(kL2Bytes / of_head * group, 1, problem.batch * problem.heads);
}

class AttentionSm90Engine final : public CudaEngine {
 public:
  std::string_view id() const override { return "cuda.attention_sm90"; }
  ComputeMethod method() const override { return ComputeMethod::tensor_cores; }
  std::string_view description() const override {
    return "fused attention, warp-specialised, with TMA and wgmma (sm_90a)";
  }

  Support supports(const Region& region, const DeviceProps& device) const override {
    if (!region.anchor_as<Op>()) return Support::other_operation("the anchor is not attention");
    if (Support support = requires_hopper(device); !support) return support;
    const AttentionProblem problem(region);
    if (touches_unsupported(region))
      return Support::no("a ragged or complex tensor, or random numbers");
    if (problem.is_paged()) return Support::no("K or V is paged");
    if (problem.has(Op::bias)) return Support::no("a bias is added to the scores");
    if (problem.op.alibi) return Support::no("ALiBi is added to the scores");
    if (problem.op.soft_cap) return Support::no("the scores have a soft cap");
    if (!problem.op.score_modifier.empty()) return Support::no("the scores have a program");
    if (problem.op.dropout > 0) return Support::no("weights are dropped");
    if (problem.has_result(Op::rng_dump)) return Support::no("a dropout mask is a result");
    if (problem.has(Op::sink)) return Support::no("the softmax has a sink");
    if (problem.has(Op::block_mask)) return Support::no("a block mask");
    if (problem.has_fp8_scales()) return Support::no("fp8 scales or largest values");
    return supports_operands(region, problem, device);
  }

  std::vector<Config> configs(const Region& region, const DeviceProps& device) const override {
    const AttentionProblem problem(region);
    const double peak = device.flops_f32;
    std::vector<Config> result;
    for (const AttentionTile90& tile : attention_tiles(problem, device)) {
      Config& config = result.emplace_back();
      config.knobs = knobs_of(tile);
      config.cost.flops = std::max(region.visible_flops(), 1.0);
      config.cost.bytes = region.bytes();
      config.cost.flops_fraction =
          config.cost.flops / (peak * attention_seconds(problem, tile, config.cost.bytes, device));
      config.scratch_bytes = tile.dynamic ? kTileCounterBytes : 0;
      config.notes.runtime_compiled = true;
      config.notes.truncating_accumulation = true;
    }
    sort_by_cost(result, device, region.precision());
    return result;
  }

  KernelDesign design(const Graph& graph, const Region& region, const Config& config,
                      const DeviceProps& device) const override {
    const AttentionProblem problem(region);
    const AttentionTile90 tile = attention_tile_of(config);
    KernelDesign result;
    result.unaligned = unaligned_fallback(graph, region, config, device);
    LaunchDesign& launch = result.launches.emplace_back();
    const std::int64_t tiles_m = ceil_div(problem.queries, tile.m);
    if (tile.dynamic)
      launch.arguments.scratch("tile_counter",
                               result.scratch.add("tile_counter", kTileCounterBytes));
    else
      launch.arguments.number("tile_counter", 0);
    const std::string printed = arguments_text(graph, problem, tile, tiles_m, launch.arguments);
    const std::string head = register_types(region.precision(), {&region.epilogue}) +
                             constants(problem, tile) + launch.arguments.struct_text() + printed;
    constexpr auto kFiles = std::to_array<std::string_view>(
        {"lib/attention_mask.cuh", "sm90/warpgroups.cuh", "sm90/attention_buffers.cuh",
         "sm90/attention_scheduler.cuh", "sm90/attention_softmax.cuh", "sm90/attention_store.cuh",
         "sm90/attention_strips.cuh", "sm90/attention_recompute.cuh",
         "sm90/attention_forward.cuh"});
    launch.source = {"attention_sm90", assemble(kFiles, head)};
    launch.function = "attention_forward";
    launch.threads = static_cast<unsigned>((tile.consumers() + 1) * 128);
    launch.shared_bytes = static_cast<unsigned>(shared_bytes(problem, tile));
    launch.grid.x = static_cast<unsigned>(
        std::min<std::int64_t>(tiles_m * problem.batch * problem.heads, device.compute_units));
    if (tile.dynamic) {
      LaunchDesign reset;
      reset.source = launch.source;
      reset.function = "reset_tiles";
      reset.threads = 1;
      reset.arguments = launch.arguments;
      launch.is_dependent_launch = true;
      result.launches.insert(result.launches.begin(), std::move(reset));
    }
    return result;
  }

 private:
  static Support supports_operands(const Region& region, const AttentionProblem& problem,
                                   const DeviceProps& device) {
    for (const View& view : {problem.q, problem.k, problem.v}) {
      if (!view.present()) return Support::no("q, k or v is computed, not loaded");
      if (view.dtype != bf16 && view.dtype != f16)
        return Support::no("q, k or v is {}, expected bf16 or f16", to_string(view.dtype));
      if (view.dtype != problem.q.dtype)
        return Support::no("k or v is {}, q is {}", to_string(view.dtype),
                           to_string(problem.q.dtype));
      for (int axis = 0; axis < view.dims.rank(); ++axis)
        if (view.dims[axis] == 0) return Support::no("no elements");
      if (const char* reason = attention_refusal(view))
        return Support::no("TMA: q, k or v has {}", reason);
    }
    for (const Op::In slot : {Op::scale_tensor, Op::seq_len_q, Op::seq_len_kv})
      if (problem.has(slot) && !problem.program(slot).is_plain_load())
        return Support::no("a scale or length is computed, not loaded");
    if (!region.epilogue.is_plain_store()) return Support::no("an epilogue follows");
    if (!region.reductions.empty()) return Support::no("a reduction follows");
    const View o = region.epilogue.stores[0].view;
    if (o.dtype != problem.q.dtype)
      return Support::no("o is {}, q is {}", to_string(o.dtype), to_string(problem.q.dtype));
    if (!is_tma_aligned(o, kAttentionColumn))
      return Support::no("rows of o are not contiguous or not 16-byte aligned");
    for (const Op::Out slot : {Op::stats, Op::max, Op::sum_exp})
      if (problem.has_result(slot) && problem.result(slot).dtype != f32)
        return Support::no("row statistics are {}, expected f32",
                           to_string(problem.result(slot).dtype));
    constexpr std::int64_t kPiece = 8;
    for (const std::int64_t dim : {problem.head_dim, problem.value_dim}) {
      if (dim > kMaxHeadDim90) return Support::no("head dim {}, at most {}", dim, kMaxHeadDim90);
      if (dim % kPiece != 0) return Support::no("head dim {} is not a multiple of {}", dim, kPiece);
    }
    constexpr std::int64_t kMost = 1 << 29;
    if (std::max(problem.queries, problem.keys) > kMost)
      return Support::no("more than 2^29 queries or keys");
    if (problem.queries * problem.batch * problem.heads > kMost)
      return Support::no("more than 2^29 rows");
    if (attention_tiles(problem, device).empty())
      return Support::no("too little shared memory for two stages");
    return Support::yes();
  }

  static std::string constants(const AttentionProblem& problem, const AttentionTile90& tile) {
    const DType dtype = problem.q.dtype;
    const std::int64_t key_dim = padded_head_dim(problem.head_dim),
                       value_dim = padded_head_dim(problem.value_dim);
    // Of the producer; consumers get the rest. The dynamic scheduler needs more.
    const int producer_registers = tile.consumers() > 2 ? 32 : tile.dynamic ? 40 : 24;
    return print_wgmma("ScoreMma", {.a = dtype, .b = dtype, .n = tile.n}) +
           print_wgmma(
               "ValueMma",
               {.a = dtype, .b = dtype, .n = static_cast<int>(value_dim), .transpose_b = true}) +
           fmt::format("typedef {} Element;\n", to_string(dtype)) +
           constant("kConsumers", tile.consumers()) + constant("kProducers", 1) +
           constant("kBlocksPerSm", 1) + constant("kComputes", 0) + constant("kCluster", 1) +
           constant("kBlockK", 64) + constant("kElementBytes", 2) +
           constant("kPingPong", tile.ping_pong) + constant("kDynamic", tile.dynamic) +
           constant("kTmaWarpRegisters", producer_registers) + constant("kBlockN", tile.n) +
           constant("kStages", tile.stages) + constant("kHeadDim", key_dim) +
           constant("kValueDim", value_dim) + constant("kKeyBox", box_columns(key_dim)) +
           constant("kValueBox", box_columns(value_dim)) +
           constant("kScalesScores", scales_scores(problem)) +
           constant("kHasStats", problem.has_result(Op::stats)) +
           constant("kHasMax", problem.has_result(Op::max)) +
           constant("kHasSumExp", problem.has_result(Op::sum_exp));
  }

  static std::string arguments_text(const Graph& graph, const AttentionProblem& problem,
                                    const AttentionTile90& tile, std::int64_t tiles_m,
                                    Arguments& arguments) {
    const std::int64_t key_box = box_columns(padded_head_dim(problem.head_dim)),
                       value_box = box_columns(padded_head_dim(problem.value_dim));
    arguments.tensor_map("map_q", problem.q, attention_map(problem.q, key_box, 64));
    arguments.tensor_map("map_k", problem.k, attention_map(problem.k, key_box, tile.n));
    arguments.tensor_map("map_v", problem.v, attention_map(problem.v, value_box, tile.n));
    add_attention_rows(arguments, "q", problem.q, kVectorBytes);
    add_attention_rows(arguments, "k", problem.k, kVectorBytes);
    add_attention_rows(arguments, "v", problem.v, kVectorBytes);
    add_attention_rows(arguments, "o", problem.epilogue().stores[0].view, kVectorBytes);
    add_attention_rows(arguments, "stats", problem.result(Op::stats), kAnyAddress);
    add_attention_rows(arguments, "max", problem.result(Op::max), kAnyAddress);
    add_attention_rows(arguments, "sum_exp", problem.result(Op::sum_exp), kAnyAddress);
    constexpr double kLog2OfE = 1.4426950408889634;
    const double scale = problem.op.scale.value_or(1);
    arguments.real("exponent", scales_scores(problem) ? kLog2OfE : scale * kLog2OfE);
    arguments.number("tiles_m", tiles_m);
    arguments.number("heads", problem.heads);
    arguments.number("all_heads", problem.batch * problem.heads);
    arguments.number("section", problem.has_bounds() ? heads_of_section(problem) : 1);
    arguments.number("heads_of_key", problem.heads / problem.key_heads);
    arguments.number("heads_of_value", problem.heads / problem.value_heads);
    arguments.number("head_dim", problem.head_dim);
    arguments.number("value_dim", problem.value_dim);
    std::string text = print_attention_mask(problem, graph, arguments);
    return text + print_score_scale(problem, graph, arguments);
  }
};

}  // namespace

const CudaEngine& attention_sm90_engine() {
  static const AttentionSm90Engine engine;
  return engine;
}

}  // namespace ashlar::cuda
