// The launch of the sm_80 attention: generated text and kernel arguments.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <numbers>

#include "base/ceil_div.hpp"
#include "cuda/engines/sm80/attention_design.hpp"
#include "cuda/jit/kernel_text.hpp"
#include "cuda/text/program_text.hpp"
#include "cuda/text/spec_text.hpp"

namespace ashlar::cuda {

using Forward = AttentionForward;

namespace {

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
                   threads / loader_lanes(round_up(view.dims[3], 16)) * view.strides[2]);
  arguments.number(name + "_element", view.strides[3]);
}

}  // namespace

// Heads whose keys and values take at most half of L2, whole groups that share them.
std::int64_t AttentionDesigner::section_heads() const {
  const std::int64_t all = problem_.batch * problem_.heads,
                     group = problem_.heads / std::max(problem_.key_heads, problem_.value_heads),
                     bytes = 2 * problem_.keys * (problem_.head_dim + problem_.value_dim);
  const std::int64_t most = std::max<std::int64_t>(
      device_.l2_bytes / 2 / std::max<std::int64_t>(bytes, 1), ceil_div(all, kMaxGridY * group));
  const std::int64_t section = std::clamp<std::int64_t>(most * group, group, all);
  // Preferably sections of one size, so that no CTA is without work.
  std::int64_t equal = section;
  while (all % equal != 0) equal -= group;
  return 2 * equal >= section && all / equal <= kMaxGridY ? equal : section;
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
    for (int axis = view->ragged_offset == kNoTensor ? 0 : 1; axis < 3; ++axis)
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
         problem_.has_score_options() || !(problem_.op.scale.value_or(1.0) > 0);
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
  const auto pages = [&](Forward::In table, const View& container, const std::string& name) {
    arguments.number(name + "_page", container.dims[2]);
    arguments.number(name + "_pages", container.dims[0]);
    text += constant("kHas_page_table_" + name, p.has(table));
    text += p.has(table) ? print_integer_load(p.program(table).steps[0].view, graph,
                                              "page_table_" + name, arguments)
                         : fmt::format(
                               "__device__ inline int64 page_table_{}(const Args&, "
                               "const Index (&)[4]) {{\n  return 0;\n}}\n",
                               name);
  };
  const auto starts = [&](const View& view, const std::string& name) {
    const bool is_ragged = view.ragged_offset != kNoTensor;
    text += constant("kIsRagged_" + name, is_ragged);
    std::string start = "0";
    if (is_ragged) {
      const View offsets = view_of(graph, view.ragged_offset);
      text += print_integer_load(offsets, graph, "ragged_" + name, arguments);
      start = fmt::format("ragged_{}(args, {{(Index)batch{}}})", name,
                          offsets.dims.rank() > 1 ? ", 0, 0, 0" : "");
    }
    text += fmt::format(
        "__device__ inline int64 start_of_{}(const Args& args, int batch) {{\n  return {};\n}}\n",
        name, start);
  };
  starts(p.q, "q");
  starts(p.k, "k");
  starts(p.v, "v");
  pages(Forward::page_table_k, p.k, "k");
  pages(Forward::page_table_v, p.v, "v");
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
  return text + print_scores(graph, arguments) +
         print_program_with_prefetch(region_.epilogue, graph, "epilogue", arguments);
}

// Whether scores of even key positions can be loaded together with the next ones.
bool AttentionDesigner::loads_pairs() const {
  if (problem_.keys % 2 != 0) return false;
  for (const Forward::In slot :
       {Forward::bias, Forward::score_input0, Forward::score_input1, Forward::score_input2,
        Forward::score_input3, Forward::dropout_mask}) {
    const PointwiseProgram& program = problem_.program(slot);
    if (!program.empty() && vector_length(program, 2) < 2) return false;
  }
  return true;
}

// What sm80/attention_scores.cuh reads.
std::string AttentionDesigner::print_scores(const Graph& graph, Arguments& arguments) const {
  const AttentionProblem& p = problem_;
  const bool drops = p.op.dropout > 0;
  std::int64_t power = 1;
  while (power <= p.heads / 2) power *= 2;
  arguments.number("alibi_power", power);
  arguments.number("block_rows", p.op.block_rows);
  arguments.number("block_columns", p.op.block_columns);
  arguments.real("soft_cap", p.op.soft_cap.value_or(1.0));
  arguments.real("keep_probability", 1.0 - p.op.dropout);
  arguments.real("keep_factor", 1.0 / (1.0 - p.op.dropout));
  std::string text =
      constant("kHasSoftCap", p.op.soft_cap.has_value()) +
      constant("kHasModifier", !p.op.score_modifier.empty()) +
      constant("kHasBias", p.has(Forward::bias)) + constant("kHasAlibi", p.op.alibi) +
      constant("kHasBlockMask", p.has(Forward::block_mask)) + constant("kHasDropout", drops) +
      constant("kHasDropoutMask", p.has(Forward::dropout_mask)) +
      constant("kPairs", loads_pairs()) +
      print_score_program("modified_score", p.op.score_modifier);
  const auto load = [&](Forward::In slot, const std::string& name) {
    text += p.has(slot) ? print_program(p.program(slot), graph, name, arguments)
                        : fmt::format(
                              "template <int kCount>\n__device__ inline void {}(const Args&, "
                              "const Index (&)[4], R (&x)[kCount]) {{\n  fill((R)0, x);\n}}\n",
                              name);
  };
  load(Forward::bias, "load_bias");
  load(Forward::score_input0, "load_score_input0");
  load(Forward::score_input1, "load_score_input1");
  load(Forward::score_input2, "load_score_input2");
  load(Forward::score_input3, "load_score_input3");
  load(Forward::block_mask, "load_block_mask");
  load(Forward::dropout_mask, "load_dropout_mask");
  const auto integer = [&](Forward::In slot, const std::string& name) {
    const bool is_there = p.has(slot);
    if (is_there)
      text += print_integer_load(p.program(slot).steps[0].view, graph, "load_" + name, arguments);
    text += fmt::format("__device__ inline int64 {}(const Args& args) {{\n{}}}\n", name,
                        is_there ? fmt::format("  const Index at[{}] = {{}};\n"
                                               "  return load_{}(args, at);\n",
                                               std::max(p.program(slot).space.rank(), 1), name)
                                 : "  return 0;\n");
  };
  integer(Forward::dropout_seed, "dropout_seed");
  integer(Forward::dropout_offset, "dropout_offset");
  return text;
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
  std::vector<const PointwiseProgram*> programs = {&region_.epilogue};
  for (const PointwiseProgram& program : region_.prologues)
    if (!program.empty()) programs.push_back(&program);
  const std::string head =
      register_types(f32, programs) + fmt::format("typedef {} Element;\n", type_name(p.q.dtype)) +
      constant("kRank", region_.epilogue.space.rank()) + constant("kHeadDim", p.head_dim) +
      constant("kValueDim", p.value_dim) + constant("kBlockM", tile.m) +
      constant("kBlockN", tile.n) + constant("kWarps", tile.warps) +
      constant("kThreads", tile.threads()) + constant("kStages", tile.stages) +
      constant("kBlocks", blocks_per_sm(tile)) + constant("kAccess", access_bytes()) +
      constant("kScalesFirst", scales_first()) +
      constant("kChecksValues", p.has_bounds() || p.has(Forward::block_mask)) +
      constant("kHasSink", p.has(Forward::sink)) + constant("kVector", result_vector()) +
      constant("kHeldRegisters", 16) +
      constant("kStagingColumns", staging_columns(value_columns())) + arguments.struct_text() +
      operands;
  constexpr std::array<std::string_view, 7> kFiles = {
      "lib/attention_mask.cuh",  "lib/epilogue_rows.cuh",     "sm80/attention_sources.cuh",
      "sm80/attention_tile.cuh", "sm80/attention_scores.cuh", "sm80/attention_rows.cuh",
      "sm80/attention.cuh"};
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
