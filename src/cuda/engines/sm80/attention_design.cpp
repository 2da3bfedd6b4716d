#include "cuda/engines/sm80/attention_design.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <numbers>

#include "base/ceil_div.hpp"
#include "cuda/engines/gemm_tails.hpp"
#include "cuda/engines/tile_cost.hpp"
#include "cuda/jit/kernel_text.hpp"
#include "cuda/text/program_text.hpp"
#include "cuda/text/spec_text.hpp"

namespace ashlar::cuda {

using Forward = AttentionForward;

namespace {

constexpr std::int64_t kMaxHeadDim = 256, kMaxLength = 1 << 28, kMaxRegisters = 255;
constexpr std::int64_t kFragment = 16, kRowPadding = 16;  // elements; bytes

std::int64_t staging_columns(std::int64_t value_columns) {
  return value_columns % 64 == 0 ? 64 : value_columns % 32 == 0 ? 32 : 16;
}

// Threads per row in RowLoader, for rows of `columns` elements.
std::int64_t loader_lanes(std::int64_t columns) {
  const std::int64_t chunks = columns / 8;
  return chunks % 8 == 0 ? 8 : chunks % 4 == 0 ? 4 : 2;
}

// The place of an operand: args.q, q_batch, q_head, q_row, q_step and q_element.
void add_operand(const std::string& name, const View& view, std::int64_t access,
                 std::int64_t threads, Arguments& arguments) {
  arguments.pointer(name, view, access > 2 ? static_cast<int>(access) : kAnyAddress);
  arguments.number(name + "_batch", view.strides[0]);
  arguments.number(name + "_head", view.strides[1]);
  arguments.number(name + "_row", view.strides[2]);
  arguments.number(name + "_step",
                   threads / loader_lanes(round_up(view.dims[3], kFragment)) * view.strides[2]);
  arguments.number(name + "_element", view.strides[3]);
}

}  // namespace

AttentionDesigner::AttentionDesigner(const Region& region, const DeviceProps& device)
    : region_(region), device_(device), problem_(region) {}

Support AttentionDesigner::support() const {
  const AttentionProblem& p = problem_;
  if (device_.compute_capability < 80)
    return Support::no("needs sm_80, the device is sm_{}", device_.compute_capability);
  if (Support support = has_no_tails(region_); !support) return support;
  for (const auto& [view, name] : {std::pair{&p.q, "q"}, {&p.k, "k"}, {&p.v, "v"}}) {
    if (!view->present()) return Support::no("{} is computed, not loaded", name);
    if (view->dtype != DType::f16 && view->dtype != DType::bf16)
      return Support::no("{} is {}, expected f16 or bf16", name, to_string(view->dtype));
    if (view->dtype != p.q.dtype)
      return Support::no("{} is {}, q is {}", name, to_string(view->dtype), to_string(p.q.dtype));
    if (view->ragged_offset != kNoTensor) return Support::no("{} is ragged", name);
    for (const int axis : {2, 3})
      if (std::abs(view->strides[axis]) > std::numeric_limits<std::int32_t>::max())
        return Support::no("stride {} of axis {} of {} exceeds 32 bits", view->strides[axis], axis,
                           name);
  }
  if (region_.precision() != f32) return Support::no("computes in f64, expected f32");
  if (p.head_dim < 1 || p.head_dim > kMaxHeadDim)
    return Support::no("head dim {}, expected 1 to {}", p.head_dim, kMaxHeadDim);
  if (p.value_dim < 1 || p.value_dim > kMaxHeadDim)
    return Support::no("head dim {} of v, expected 1 to {}", p.value_dim, kMaxHeadDim);
  if (std::max(p.queries, p.keys) > kMaxLength)
    return Support::no("length {}, at most {} is supported", std::max(p.queries, p.keys),
                       kMaxLength);
  if (p.is_paged()) return Support::no("k or v is paged");
  if (p.has(Forward::bias)) return Support::no("a bias");
  if (p.op.alibi) return Support::no("ALiBi");
  if (p.op.soft_cap) return Support::no("a soft cap");
  if (!p.op.score_modifier.empty()) return Support::no("a score program");
  if (p.op.dropout > 0) return Support::no("dropout");
  if (p.has(Forward::block_mask)) return Support::no("a block mask");
  if (p.has_fp8_scales()) return Support::no("fp8 scales or amax results");
  if (tiles().empty())
    return Support::no("no tile for head dims {} and {} fits {} bytes of shared memory", p.head_dim,
                       p.value_dim, device_.shared_bytes);
  constexpr std::int64_t kMaxHeads = 1 << 30, kSmallestTile = 64;
  if (p.batch * p.heads > kMaxHeads)
    return Support::no("{} heads, at most {} are supported", p.batch * p.heads, kMaxHeads);
  if (ceil_div(p.queries, kSmallestTile) > kMaxGridY)
    return Support::no("{} queries, at most {} are supported", p.queries,
                       kSmallestTile * kMaxGridY);
  return Support::yes();
}

std::int64_t AttentionDesigner::head_columns() const {
  return round_up(problem_.head_dim, kFragment);
}
std::int64_t AttentionDesigner::value_columns() const {
  return round_up(problem_.value_dim, kFragment);
}

std::int64_t AttentionDesigner::shared_bytes(const Tile& tile) const {
  const std::int64_t key_pitch = 2 * head_columns() + kRowPadding,
                     value_pitch = 2 * value_columns() + kRowPadding;
  return tile.m * key_pitch + tile.stages * tile.n * (key_pitch + value_pitch);
}

// As ptxas uses them, about: accumulators, fragments, state of the softmax, addresses.
std::int64_t AttentionDesigner::registers(const Tile& tile) const {
  const std::int64_t fragments = tile.warp_rows() / kFragment;
  return fragments * (value_columns() / 2 + tile.n / 2 + 12) + 36;
}

// Resident CTAs that registers and shared memory allow; __launch_bounds__ enforces it.
std::int64_t AttentionDesigner::blocks_per_sm(const Tile& tile) const {
  constexpr std::int64_t kRegistersPerSm = 65536, kReserved = 1024;
  const std::int64_t used = std::min(round_up(registers(tile), 8), kMaxRegisters + 1);
  const std::int64_t by_registers = kRegistersPerSm / (used * tile.threads()),
                     by_memory = device_.l1_bytes / (shared_bytes(tile) + kReserved);
  return std::max<std::int64_t>(std::min(by_registers, by_memory), 1);
}

std::int64_t AttentionDesigner::ctas(const Tile& tile) const {
  return problem_.batch * problem_.heads * ceil_div(problem_.queries, tile.m);
}

// Heads whose keys and values take at most half of L2, whole groups that share them.
std::int64_t AttentionDesigner::section_heads() const {
  const std::int64_t all = problem_.batch * problem_.heads,
                     group = problem_.heads / std::max(problem_.key_heads, problem_.value_heads),
                     bytes = 2 * problem_.keys * (problem_.head_dim + problem_.value_dim);
  const std::int64_t most = std::max<std::int64_t>(
      device_.l2_bytes / 2 / std::max<std::int64_t>(bytes, 1), ceil_div(all, kMaxGridY * group));
  std::int64_t section = std::clamp<std::int64_t>(most * group, group, all);
  // Sections of one size, so that no CTA is without work.
  while (all % section != 0) section -= group;
  return section;
}

std::vector<AttentionDesigner::Tile> AttentionDesigner::tiles() const {
  // 32 rows per warp read keys and values from shared memory half as often as 16, but need twice
  // the accumulators.
  constexpr std::array<std::array<std::int64_t, 3>, 7> kTiles = {{{128, 128, 4},
                                                                  {128, 64, 4},
                                                                  {128, 48, 4},
                                                                  {128, 32, 4},
                                                                  {128, 64, 8},
                                                                  {64, 64, 4},
                                                                  {64, 32, 4}}};
  std::vector<Tile> result;
  for (const auto& [m, n, warps] : kTiles)
    for (const std::int64_t stages : {2, 1}) {
      const Tile tile{m, n, warps, stages};
      if (shared_bytes(tile) > device_.shared_bytes || registers(tile) > kMaxRegisters) continue;
      result.push_back(tile);
    }
  return result;
}

// An estimate, not measured: per block of keys the longest of tensor-core time, exponentials and
// shared-memory reads; CTAs are dealt to SMs without gaps but for the last wave.
double AttentionDesigner::seconds(const Tile& tile) const {
  // mma.sync reaches a part of the rate of wgmma and tcgen05.
  const int capability = device_.compute_capability;
  const double share = capability == 90 ? 0.6 : capability == 100 ? 0.25 : 0.85;
  constexpr double kExponentials = 16, kSharedBytes = 128, kIssues = 128;  // per SM and cycle
  constexpr double kPerScore = 7;  // instructions per score besides products
  constexpr double kBlockCycles = 150, kCtaCycles = 3000;  // barriers; first loads, epilogue
  const double lanes = capability == 80 ? 64 : 128;
  const double clock = device_.flops_f32 / (2 * lanes * device_.compute_units);
  const double flops_per_cycle =
      tensor_rate(device_, problem_.q.dtype) * share / (clock * device_.compute_units);
  const auto area = static_cast<double>(tile.m * tile.n);
  const auto columns = static_cast<double>(head_columns() + value_columns());
  const double products = 2 * area * columns / flops_per_cycle;
  const double exponentials = area / kExponentials, others = area * kPerScore / kIssues;
  const double reads = 2 * columns * static_cast<double>(tile.n * tile.warps) +
                       2 * static_cast<double>(tile.m * head_columns());
  // With few warps the softmax of one overlaps with the products of another only in part.
  const auto warps = static_cast<double>(tile.warps * blocks_per_sm(tile));
  const double exposed = (exponentials + others) * std::min(1.0, 4 / warps);
  const double of_block = std::max({products + exposed * 0.5, exponentials, reads / kSharedBytes}) +
                          kBlockCycles * 4 / warps;
  const double visited = problem_.visited_blocks(tile.m, tile.n);
  const auto count = static_cast<double>(ctas(tile));
  const double cycles =
      visited * of_block + count * kCtaCycles / static_cast<double>(blocks_per_sm(tile));
  const auto units = static_cast<double>(device_.compute_units);
  const double longest = std::max(visited / std::max(count, 1.0), 1.0) * of_block + kCtaCycles;
  return (std::max(cycles / units, 0.5 * cycles / units + longest)) / clock;
}

Config AttentionDesigner::config_of(const Tile& tile) const {
  Config config;
  config.knobs = {
      {"block_m", tile.m}, {"block_n", tile.n}, {"warps", tile.warps}, {"stages", tile.stages}};
  // Operands that need element loads stall the products.
  const double slowdown = access_bytes() == 16 ? 1 : access_bytes() > 2 ? 1.5 : 8;
  config.cost.flops = std::max(region_.visible_flops(), 1.0);
  config.cost.bytes = region_.bytes();
  config.cost.bytes_fraction = 0.8;
  config.cost.flops_fraction = config.cost.flops / (device_.flops_f32 * seconds(tile) * slowdown);
  config.notes.runtime_compiled = true;
  config.notes.truncating_accumulation = true;
  return config;
}

std::vector<Config> AttentionDesigner::configs() const {
  std::vector<Config> result;
  for (const Tile& tile : tiles()) result.push_back(config_of(tile));
  sort_by_cost(result, device_, f32);
  return result;
}

std::int64_t AttentionDesigner::access_bytes() const {
  std::int64_t elements = 8;
  const auto fits = [&](std::int64_t number) {
    while (elements > 1 && number % elements != 0) elements /= 2;
  };
  fits(problem_.head_dim);
  fits(problem_.value_dim);
  for (const View* view : {&problem_.q, &problem_.k, &problem_.v}) {
    if (view->dims[3] > 1 && view->strides[3] != 1) return 2;
    fits(view->offset);
    for (int axis = 0; axis < 3; ++axis)
      if (view->dims[axis] > 1) fits(view->strides[axis]);
  }
  return 2 * elements;
}

// Columns per vector store: contiguous and aligned in every tensor that the epilogue touches.
std::int64_t AttentionDesigner::result_vector() const {
  const PointwiseProgram& program = region_.epilogue;
  const bool halves =
      std::all_of(program.stores.begin(), program.stores.end(),
                  [](const auto& store) { return bit_width(store.view.dtype) <= 16; });
  std::int64_t vector = vector_length(program, halves ? 8 : 4);
  while (vector > 1 && problem_.value_dim % vector != 0) vector /= 2;
  return vector;
}

// The softmax takes the maximum of unscaled scores, which needs a positive scale, and compares it
// with nothing else.
bool AttentionDesigner::scales_first() const {
  return problem_.has(Forward::scale_tensor) || problem_.has(Forward::sink) ||
         !(problem_.op.scale.value_or(1.0) > 0);
}

std::string AttentionDesigner::print_operands(const Graph& graph, std::int64_t threads,
                                              Arguments& arguments) const {
  const AttentionProblem& p = problem_;
  const std::int64_t access = access_bytes();
  add_operand("q", p.q, access, threads, arguments);
  add_operand("k", p.k, access, threads, arguments);
  add_operand("v", p.v, access, threads, arguments);
  arguments.number("magic_group_k", divider_word(p.heads / p.key_heads));
  arguments.number("magic_group_v", divider_word(p.heads / p.value_heads));
  std::string text = print_attention_mask(p, graph, arguments);
  const bool has_scale = p.has(Forward::scale_tensor), has_sink = p.has(Forward::sink);
  if (has_scale)
    text += print_program(p.program(Forward::scale_tensor), graph, "load_scale", arguments);
  text += fmt::format("__device__ inline float scale_of(const Args& args) {{\n{}}}\n",
                      has_scale
                          ? fmt::format("  const Index at[{}] = {{}};\n  R scale[1];\n"
                                        "  load_scale<1>(args, at, scale);\n  return scale[0];\n",
                                        std::max(p.program(Forward::scale_tensor).space.rank(), 1))
                          : fmt::format("  return (float){};\n",
                                        arguments.real("scale", p.op.scale.value_or(1.0))));
  arguments.number("factor_bits", std::bit_cast<std::int32_t>(static_cast<float>(
                                      std::numbers::log2e * p.op.scale.value_or(1.0))));
  if (has_sink) text += print_program(p.program(Forward::sink), graph, "load_sink", arguments);
  text += fmt::format("__device__ inline float sink_of(const Args& args, int h) {{\n{}}}\n",
                      has_sink ? "  const Index at[4] = {0, (Index)h, 0, 0};\n  R sink[1];\n"
                                 "  load_sink<1>(args, at, sink);\n  return sink[0];\n"
                               : "  return 0;\n");
  const auto result = [&](Forward::Out slot, const std::string& name, const std::string& flag) {
    text += constant(flag, p.has_result(slot));
    text += p.has_result(slot)
                ? print_store(p.result(slot), graph, name, arguments)
                : fmt::format(
                      "template <class V>\n__device__ inline void {}(const Args&, const "
                      "Index (&)[4], V) {{}}\n",
                      name);
  };
  result(Forward::stats, "store_stats", "kHasStats");
  result(Forward::max, "store_max", "kHasMax");
  result(Forward::sum_exp, "store_sum_exp", "kHasSumExp");
  return text + print_program_with_prefetch(region_.epilogue, graph, "epilogue", arguments);
}

KernelDesign AttentionDesigner::design(const Graph& graph, const Config& config) const {
  const Tile tile{config.knob("block_m"), config.knob("block_n"), config.knob("warps"),
                  config.knob("stages")};
  const AttentionProblem& p = problem_;
  if (p.batch * p.heads * p.queries == 0) return {};
  LaunchDesign launch;
  Arguments& arguments = launch.arguments;
  arguments.number("heads", p.heads);
  arguments.number("magic_heads", divider_word(p.heads));
  arguments.number("batches", p.batch);
  const std::string operands = print_operands(graph, tile.threads(), arguments);
  const std::string head =
      register_types(f32, {&region_.epilogue}) +
      fmt::format("typedef {} Element;\n", type_name(p.q.dtype)) +
      constant("kRank", region_.epilogue.space.rank()) + constant("kHeadDim", p.head_dim) +
      constant("kValueDim", p.value_dim) + constant("kBlockM", tile.m) +
      constant("kBlockN", tile.n) + constant("kWarps", tile.warps) +
      constant("kThreads", tile.threads()) + constant("kStages", tile.stages) +
      constant("kBlocks", blocks_per_sm(tile)) + constant("kAccess", access_bytes()) +
      constant("kScalesFirst", scales_first()) + constant("kChecksValues", p.has_bounds()) +
      constant("kHasSink", p.has(Forward::sink)) + constant("kVector", result_vector()) +
      constant("kHeldRegisters", 16) +
      constant("kStagingColumns", staging_columns(value_columns())) + arguments.struct_text() +
      operands;
  constexpr std::array<std::string_view, 5> kFiles = {
      "lib/attention_mask.cuh", "lib/epilogue_rows.cuh", "sm80/attention_tile.cuh",
      "sm80/attention_rows.cuh", "sm80/attention.cuh"};
  launch.source = {"attention_sm80", assemble(kFiles, head)};
  launch.function = "attention_sm80";
  launch.unaligned_function = "attention_sm80_elements";
  launch.threads = static_cast<unsigned>(tile.threads());
  launch.shared_bytes = static_cast<unsigned>(shared_bytes(tile));
  const std::int64_t section = section_heads();
  launch.grid = {static_cast<unsigned>(section), static_cast<unsigned>(ceil_div(p.queries, tile.m)),
                 static_cast<unsigned>(ceil_div(p.batch * p.heads, section))};
  launch.unaligned_grid = launch.grid;
  KernelDesign design;
  design.launches.push_back(std::move(launch));
  return design;
}

}  // namespace ashlar::cuda
