// Backward pass of fused attention on Hopper (FlashAttention-3): three launches.
#include <algorithm>

#include "base/ceil_div.hpp"
#include "cuda/engines/channel_axes.hpp"
#include "cuda/engines/engines.hpp"
#include "cuda/engines/sm90/attention_backward_tile.hpp"
#include "cuda/engines/sm90/attention_operands.hpp"
#include "cuda/engines/sm90/gemm_tile.hpp"
#include "cuda/engines/tile_cost.hpp"
#include "cuda/jit/kernel_text.hpp"
#include "cuda/text/program_text.hpp"
#include "cuda/text/spec_text.hpp"
#include "cuda/text/wgmma_text.hpp"

namespace ashlar::cuda {

namespace {

using Backward = AttentionBackward;
using BackwardTile = AttentionBackwardTile90;

struct NamedOperand {
  Backward::In slot;
  const char* name;
};

// Key heads, in the order of tiles, whose Q, dO and sums of dQ stay in L2 together.
std::int64_t heads_of_section(const AttentionBackwardProblem& problem) {
  if (!problem.has_bounds()) return 1;
  constexpr std::int64_t kL2Bytes = 32 << 20;
  const std::int64_t group = problem.heads / problem.key_heads;
  const std::int64_t of_head =
      group * problem.queries * (6 * problem.head_dim + 2 * problem.value_dim);
  return std::clamp<std::int64_t>(kL2Bytes / of_head, 1, problem.batch * problem.key_heads);
}

class AttentionBackwardSm90Engine final : public CudaEngine {
 public:
  std::string_view id() const override { return "cuda.attention_backward_sm90"; }
  ComputeMethod method() const override { return ComputeMethod::tensor_cores; }
  std::string_view description() const override {
    return "fused attention, backward, warp-specialised, with TMA and wgmma (sm_90a)";
  }

  Support supports(const Region& region, const DeviceProps& device) const override {
    if (!region.anchor_as<Backward>())
      return Support::other_operation("the anchor is not attention_backward");
    if (Support support = requires_hopper(device); !support) return support;
    if (touches_unsupported(region))
      return Support::no("a ragged or complex tensor, or random numbers");
    const AttentionBackwardProblem problem(region);
    if (Support support = supports_options(problem); !support) return support;
    return supports_operands(region, problem, device);
  }

  std::vector<Config> configs(const Region& region, const DeviceProps& device) const override {
    const AttentionBackwardProblem problem(region);
    std::vector<Config> result;
    for (const BackwardTile& tile : attention_tiles(problem, device)) {
      Config& config = result.emplace_back();
      config.knobs = knobs_of(tile);
      config.cost.flops = std::max(region.visible_flops(), 1.0);
      config.cost.bytes = region.bytes();
      config.cost.flops_fraction =
          config.cost.flops /
          (device.flops_f32 * attention_seconds(problem, tile, config.cost.bytes, device));
      const BackwardScratch scratch = scratch_of(problem, tile);
      config.scratch_bytes = scratch.d_q + 2 * scratch.row_values;
      config.notes.runtime_compiled = true;
      config.notes.truncating_accumulation = true;
      config.notes.deterministic = false;  // dQ is summed by additions in any order
    }
    sort_by_cost(result, device, region.precision());
    return result;
  }

  KernelDesign design(const Graph& graph, const Region& region, const Config& config,
                      const DeviceProps& device) const override {
    const AttentionBackwardProblem problem(region);
    const BackwardTile tile = attention_backward_tile_of(config);
    const BackwardScratch scratch = scratch_of(problem, tile);
    KernelDesign result;
    result.unaligned = [&graph, &region, device] {
      return generic_engine().design(graph, region, {}, device);
    };
    const Reservations reservations{
        .d_q = result.scratch.add("sums of dQ", scratch.d_q),
        .log_sums = result.scratch.add("logarithms of row sums", scratch.row_values),
        .deltas = result.scratch.add("delta", scratch.row_values)};
    const std::string types = register_types(region.precision(), {&region.epilogue}) +
                              fmt::format("typedef {} Element;\n", to_string(problem.q.dtype)) +
                              constant("kBlockM", tile.m) +
                              constant("kHeadDim", padded_head_dim(problem));
    const Parts parts{graph, problem, tile, reservations, types};
    result.launches.push_back(prepare_rows(parts));
    result.launches.push_back(differentiate(parts));
    result.launches.push_back(convert_queries(parts));
    return result;
  }

 private:
  struct Reservations {
    int d_q, log_sums, deltas;
  };
  struct Parts {
    const Graph& graph;
    const AttentionBackwardProblem& problem;
    const BackwardTile& tile;
    const Reservations& scratch;
    const std::string& types;

    std::int64_t tiles_m() const { return ceil_div(problem.queries, std::int64_t{tile.m}); }
    std::int64_t row_tiles() const { return tiles_m() * problem.batch * problem.heads; }
  };

  static Support supports_options(const AttentionBackwardProblem& problem) {
    if (problem.has(Backward::page_table_k)) return Support::no("K is paged");
    if (problem.has(Backward::page_table_v)) return Support::no("V is paged");
    if (problem.has(Backward::bias)) return Support::no("a bias is added to the scores");
    if (problem.result(Backward::dbias).present()) return Support::no("the gradient of a bias");
    if (problem.op.alibi) return Support::no("ALiBi is added to the scores");
    if (problem.op.soft_cap) return Support::no("the scores have a soft cap");
    if (!problem.op.score_modifier.empty()) return Support::no("the scores have a program");
    if (problem.op.dropout > 0) return Support::no("weights are dropped");
    if (problem.result(Backward::rng_dump).present())
      return Support::no("a dropout mask is a result");
    if (problem.has(Backward::sink)) return Support::no("the softmax has a sink");
    if (problem.has(Backward::block_mask)) return Support::no("a block mask");
    for (const Backward::In slot :
         {Backward::descale_q, Backward::descale_k, Backward::descale_v, Backward::descale_o,
          Backward::descale_do, Backward::descale_s, Backward::descale_dp, Backward::scale_s,
          Backward::scale_dq, Backward::scale_dk, Backward::scale_dv, Backward::scale_dp})
      if (problem.has(slot)) return Support::no("fp8 scales");
    for (const Backward::Out slot :
         {Backward::amax_dq, Backward::amax_dk, Backward::amax_dv, Backward::amax_dp})
      if (problem.result(slot).present()) return Support::no("a largest value is a result");
    return Support::yes();
  }

  static Support supports_operands(const Region& region, const AttentionBackwardProblem& problem,
                                   const DeviceProps& device) {
    const DType dtype = problem.q.dtype;
    for (const auto& [slot, name] : {NamedOperand{Backward::q, "q"}, NamedOperand{Backward::k, "k"},
                                     NamedOperand{Backward::v, "v"}, NamedOperand{Backward::o, "o"},
                                     NamedOperand{Backward::d_o, "d_o"}}) {
      const View view = problem.loaded(slot);
      if (!view.present()) return Support::no("{} is computed, not loaded", name);
      if (view.dtype != bf16 && view.dtype != f16)
        return Support::no("{} is {}, expected bf16 or f16", name, to_string(view.dtype));
      if (view.dtype != dtype)
        return Support::no("{} is {}, q is {}", name, to_string(view.dtype), to_string(dtype));
      for (int axis = 0; axis < view.dims.rank(); ++axis)
        if (view.dims[axis] == 0) return Support::no("no elements");
      if (const char* reason = attention_refusal(view))
        return Support::no("TMA: {} has {}", name, reason);
    }
    if (!problem.loaded(Backward::stats).present())
      return Support::no("stats is computed, not loaded");
    if (problem.loaded(Backward::stats).dtype != f32)
      return Support::no("stats is {}, expected f32",
                         to_string(problem.loaded(Backward::stats).dtype));
    for (const PointwiseProgram* program :
         {&problem.seq_len_q, &problem.seq_len_kv, &problem.scale_tensor})
      if (!program->steps.empty() && !program->is_plain_load())
        return Support::no("a scale or length is computed, not loaded");
    if (!region.epilogue.is_plain_store()) return Support::no("an epilogue follows");
    if (!region.reductions.empty()) return Support::no("a reduction follows");
    const View d_q = problem.epilogue().stores[0].view;
    for (const auto& [view, name] :
         {std::pair(d_q, "dq"), std::pair(problem.result(Backward::dk), "dk"),
          std::pair(problem.result(Backward::dv), "dv")}) {
      if (!view.present()) return Support::no("{} is not stored", name);
      if (view.dtype != dtype)
        return Support::no("{} is {}, q is {}", name, to_string(view.dtype), to_string(dtype));
      if (!is_tma_aligned(view, kAttentionColumn))
        return Support::no("rows of {} are not contiguous or not 16-byte aligned", name);
    }
    if (problem.key_heads != problem.value_heads)
      return Support::no("{} key heads, {} value heads", problem.key_heads, problem.value_heads);
    constexpr std::int64_t kPiece = 8;
    for (const std::int64_t dim : {problem.head_dim, problem.value_dim}) {
      if (dim > kMaxBackwardHeadDim90)
        return Support::no("head dim {}, at most {}", dim, kMaxBackwardHeadDim90);
      if (dim % kPiece != 0) return Support::no("head dim {} is not a multiple of {}", dim, kPiece);
    }
    constexpr std::int64_t kMost = 1 << 29;
    if (std::max(problem.queries, problem.keys) > kMost)
      return Support::no("more than 2^29 queries or keys");
    if (std::max(problem.queries, problem.keys) * problem.batch * problem.heads > kMost)
      return Support::no("more than 2^29 rows");
    if (attention_tiles(problem, device).empty())
      return Support::no("too little shared memory for two stages");
    return Support::yes();
  }

  static LaunchDesign launch_of(const Parts& parts, std::initializer_list<std::string_view> files,
                                const std::string& name, const std::string& constants,
                                Arguments arguments) {
    LaunchDesign launch;
    const std::string mask = print_attention_mask(parts.problem, parts.graph, arguments);
    const std::string scale = print_score_scale(parts.problem, parts.graph, arguments);
    arguments.number("tiles_m", parts.tiles_m());
    arguments.number("heads", parts.problem.heads);
    arguments.number("head_dim", parts.problem.head_dim);
    arguments.number("value_dim", parts.problem.value_dim);
    launch.source = {name,
                     assemble(std::vector<std::string_view>(files),
                              parts.types + constants + arguments.struct_text() + mask + scale)};
    launch.function = name;
    launch.arguments = std::move(arguments);
    launch.grid.x = static_cast<unsigned>(parts.row_tiles());
    return launch;
  }

  // What computes rows again that NaN or infinity reached.
  static void add_operands(const Parts& parts, Arguments& arguments) {
    const AttentionBackwardProblem& problem = parts.problem;
    for (const auto& [slot, name] :
         {NamedOperand{Backward::q, "q"}, NamedOperand{Backward::k, "k"},
          NamedOperand{Backward::v, "v"}, NamedOperand{Backward::d_o, "d_o"}})
      add_attention_rows(arguments, name, problem.loaded(slot), kVectorBytes);
    arguments.scratch("log_sums", parts.scratch.log_sums);
    arguments.scratch("deltas", parts.scratch.deltas);
    arguments.number("heads_of_key", problem.heads / problem.key_heads);
  }

  static LaunchDesign prepare_rows(const Parts& parts) {
    const AttentionBackwardProblem& problem = parts.problem;
    Arguments arguments;
    add_attention_rows(arguments, "o", problem.loaded(Backward::o), kVectorBytes);
    add_attention_rows(arguments, "d_o", problem.loaded(Backward::d_o), kVectorBytes);
    add_attention_rows(arguments, "stats", problem.loaded(Backward::stats), kAnyAddress);
    arguments.scratch("d_q", parts.scratch.d_q);
    arguments.scratch("log_sums", parts.scratch.log_sums);
    arguments.scratch("deltas", parts.scratch.deltas);
    return launch_of(parts, {"lib/attention_mask.cuh", "sm90/attention_backward_rows.cuh"},
                     "attention_backward_rows", "", std::move(arguments));
  }

  static LaunchDesign differentiate(const Parts& parts) {
    const AttentionBackwardProblem& problem = parts.problem;
    const BackwardTile& tile = parts.tile;
    constexpr int kColumns = 64;
    Arguments arguments;
    for (const auto& [slot, name, rows] : {std::tuple(Backward::q, "map_q", tile.m),
                                           std::tuple(Backward::k, "map_k", BackwardTile::n),
                                           std::tuple(Backward::v, "map_v", BackwardTile::n),
                                           std::tuple(Backward::d_o, "map_d_o", tile.m)}) {
      const View view = problem.loaded(slot);
      arguments.tensor_map(name, view, attention_map(view, kColumns, rows));
    }
    const TensorMapForm row_values{
        .dtype = f32,
        .swizzle = 0,
        .axes = {{.extent = tile.m, .stride = 1, .box = tile.m},
                 {.extent = parts.row_tiles(), .stride = tile.m, .box = 1}}};
    arguments.tensor_map_of_scratch("map_log_sums", parts.scratch.log_sums, row_values);
    arguments.tensor_map_of_scratch("map_deltas", parts.scratch.deltas, row_values);
    arguments.scratch("d_q", parts.scratch.d_q);
    add_operands(parts, arguments);
    add_attention_rows(arguments, "d_k", problem.result(Backward::dk), kVectorBytes);
    add_attention_rows(arguments, "d_v", problem.result(Backward::dv), kVectorBytes);
    const std::int64_t tiles_n = ceil_div(problem.keys, std::int64_t{BackwardTile::n}),
                       key_heads = problem.batch * problem.key_heads;
    arguments.number("tiles_n", tiles_n);
    arguments.number("key_heads", problem.key_heads);
    arguments.number("all_key_heads", key_heads);
    arguments.number("section", heads_of_section(problem));
    LaunchDesign launch = launch_of(
        parts,
        {"lib/attention_mask.cuh", "sm90/warpgroups.cuh", "sm90/attention_backward_buffers.cuh",
         "sm90/attention_strips.cuh", "sm90/attention_backward_recompute.cuh",
         "sm90/attention_backward_store.cuh", "sm90/attention_backward.cuh"},
        "attention_backward", constants(problem, tile), std::move(arguments));
    launch.threads = 3 * 128;
    launch.shared_bytes = static_cast<unsigned>(shared_bytes(problem, tile));
    launch.grid.x = static_cast<unsigned>(tiles_n * key_heads);
    return launch;
  }

  static LaunchDesign convert_queries(const Parts& parts) {
    Arguments arguments;
    arguments.scratch("d_q", parts.scratch.d_q);
    add_operands(parts, arguments);
    add_attention_rows(arguments, "to", parts.problem.epilogue().stores[0].view, kVectorBytes);
    return launch_of(
        parts,
        {"lib/attention_mask.cuh", "sm90/attention_strips.cuh",
         "sm90/attention_backward_recompute.cuh", "sm90/attention_backward_queries.cuh"},
        "attention_backward_queries", "", std::move(arguments));
  }

  static std::string constants(const AttentionBackwardProblem& problem, const BackwardTile& tile) {
    const DType dtype = problem.q.dtype;
    constexpr int kRegistersOfProducer = 24;
    const auto mma = [&](const char* name, std::int64_t n, bool transpose_a, bool transpose_b) {
      return print_wgmma(name, {.a = dtype,
                                .b = dtype,
                                .n = static_cast<int>(n),
                                .transpose_a = transpose_a,
                                .transpose_b = transpose_b});
    };
    return mma("ScoreMma", tile.m, false, false) +
           mma("KeyMma", padded_head_dim(problem), false, true) + mma("QueryMma", 64, true, true) +
           constant("kConsumers", 2) + constant("kProducers", 1) + constant("kBlocksPerSm", 1) +
           constant("kComputes", 0) + constant("kCluster", 1) + constant("kBlockK", 64) +
           constant("kElementBytes", 2) + constant("kPingPong", 0) +
           constant("kTmaWarpRegisters", kRegistersOfProducer) +
           constant("kBlockN", BackwardTile::n) + constant("kStages", tile.stages);
  }
};

}  // namespace

const CudaEngine& attention_backward_sm90_engine() {
  static const AttentionBackwardSm90Engine engine;
  return engine;
}

}  // namespace ashlar::cuda
