#include "cuda/engines/attention_problem.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/ceil_div.hpp"
#include "cuda/engines/channel_axes.hpp"
#include "cuda/text/spec_text.hpp"

namespace ashlar::cuda {

using Forward = AttentionForward;
using Backward = AttentionBackward;

namespace {

const Dims& dims_of(const Region& region, int slot) {
  return region.anchor->inputs[static_cast<std::size_t>(slot)].dims;
}

bool has_input(const Region& region, int slot) {
  const auto& inputs = region.anchor->inputs;
  return static_cast<std::size_t>(slot) < inputs.size() &&
         inputs[static_cast<std::size_t>(slot)].present();
}

View loaded_view(const Region& region, int slot) {
  const PointwiseProgram& program = input_program(region, slot);
  return program.is_plain_load() ? program.steps[0].view : View{};
}

}  // namespace

template <class Op>
AttentionShape::AttentionShape(const Region& region, const Op& attributes)
    : op(attributes),
      batch(dims_of(region, Op::q)[0]),
      heads(dims_of(region, Op::q)[1]),
      key_heads(dims_of(region, Op::k)[1]),
      value_heads(dims_of(region, Op::v)[1]),
      queries(dims_of(region, Op::q)[2]),
      keys(op.max_seq_len_kv.value_or(dims_of(region, Op::k)[2])),
      head_dim(dims_of(region, Op::q)[3]),
      value_dim(dims_of(region, Op::v)[3]),
      q(loaded_view(region, Op::q)),
      k(loaded_view(region, Op::k)),
      v(loaded_view(region, Op::v)),
      seq_len_q(input_program(region, Op::seq_len_q)),
      seq_len_kv(input_program(region, Op::seq_len_kv)),
      scale_tensor(input_program(region, Op::scale_tensor)) {}

bool AttentionShape::has_lengths() const {
  return !seq_len_q.steps.empty() || !seq_len_kv.steps.empty();
}

std::int64_t AttentionShape::left_bound() const {
  return std::min(op.left_bound.value_or(0), queries + keys + 1);
}
std::int64_t AttentionShape::right_bound() const {
  return std::min(op.right_bound.value_or(0), queries + keys + 1);
}

AttentionProblem::AttentionProblem(const Region& region)
    : AttentionShape(region, *region.anchor_as<Forward>()), region_(region) {}

bool AttentionProblem::has(Forward::In slot) const { return has_input(region_, slot); }

bool AttentionProblem::has_result(Forward::Out slot) const { return result(slot).present(); }

const PointwiseProgram& AttentionProblem::program(Forward::In slot) const {
  return input_program(region_, slot);
}

View AttentionProblem::result(Forward::Out slot) const { return output_view(region_, slot); }

bool AttentionProblem::is_paged() const {
  return has(Forward::page_table_k) || has(Forward::page_table_v);
}

bool AttentionProblem::has_score_options() const {
  return op.soft_cap || op.alibi || !op.score_modifier.empty() || has(Forward::bias);
}

bool AttentionProblem::has_fp8_scales() const {
  for (const Forward::In slot : {Forward::descale_q, Forward::descale_k, Forward::descale_v,
                                 Forward::descale_s, Forward::scale_s, Forward::scale_o})
    if (has(slot)) return true;
  return has_result(Forward::amax_s) || has_result(Forward::amax_o);
}

double AttentionShape::visited_blocks(std::int64_t block_m, std::int64_t block_n) const {
  const std::int64_t shift = op.alignment == MaskAlignment::bottom_right ? keys - queries : 0;
  double blocks = 0;
  for (std::int64_t first = 0; first < queries; first += block_m) {
    const std::int64_t last = std::min(first + block_m, queries) - 1;
    std::int64_t begin = 0, end = keys;
    if (op.left_bound) begin = std::max<std::int64_t>(first + shift - left_bound() + 1, 0);
    if (op.right_bound) end = std::min(end, last + shift + right_bound() + 1);
    if (begin < end) blocks += static_cast<double>(ceil_div(end, block_n) - begin / block_n);
  }
  return blocks * static_cast<double>(batch * heads);
}

AttentionBackwardProblem::AttentionBackwardProblem(const Region& region)
    : AttentionShape(region, *region.anchor_as<Backward>()), region_(region) {}

bool AttentionBackwardProblem::has(Backward::In slot) const { return has_input(region_, slot); }

View AttentionBackwardProblem::loaded(Backward::In slot) const {
  return loaded_view(region_, slot);
}

View AttentionBackwardProblem::result(Backward::Out slot) const {
  return output_view(region_, slot);
}

std::string print_score_program(const std::string& name, const ScoreProgram& program) {
  std::string body;
  const auto value = [](std::int64_t number) {
    return number < kFirstScoreStep ? fmt::format("values[{}]", number)
                                    : fmt::format("s{}", number - kFirstScoreStep);
  };
  for (std::size_t n = 0; n < program.size(); ++n) {
    const ScoreStep& step = program[n];
    std::vector<std::string> operands;
    for (std::int64_t number : step.args) operands.push_back(value(number));
    body += fmt::format("  const R s{} = {};\n", n,
                        step.constant ? literal(*step.constant)
                                      : operation_text(step.op, f32, std::move(operands)));
  }
  const std::string result = program.empty() ? "values[0]" : fmt::format("s{}", program.size() - 1);
  return fmt::format("__device__ inline R {}(const R (&values)[{}]) {{\n{}  return {};\n}}\n", name,
                     kFirstScoreStep, body, result);
}

std::string print_attention_mask(const AttentionShape& problem, const Graph& graph,
                                 Arguments& arguments) {
  arguments.number("queries", problem.queries);
  arguments.number("keys", problem.keys);
  arguments.number("left_bound", problem.left_bound());
  arguments.number("right_bound", problem.right_bound());
  std::string text = constant("kBottomRight", problem.op.alignment == MaskAlignment::bottom_right) +
                     constant("kHasLeftBound", problem.op.left_bound.has_value()) +
                     constant("kHasRightBound", problem.op.right_bound.has_value());
  const auto length = [&](const PointwiseProgram& program, const std::string& name) {
    const bool is_there = !program.steps.empty();
    text += constant("kHas_" + name, is_there);
    text += is_there ? print_integer_load(program.steps[0].view, graph, name, arguments)
                     : fmt::format(
                           "__device__ inline int64 {}(const Args&, const Index (&)[4]) {{\n"
                           "  return 0;\n}}\n",
                           name);
  };
  length(problem.seq_len_q, "seq_len_q");
  length(problem.seq_len_kv, "seq_len_kv");
  return text;
}

std::string print_score_scale(const AttentionShape& problem, const Graph& graph,
                              Arguments& arguments) {
  const std::string scale = arguments.real("scale", problem.op.scale.value_or(1));
  if (!problem.has_scale_tensor())
    return fmt::format(
        "__device__ inline float score_scale(const Args& args) {{ return (float){}; }}\n", scale);
  return print_program(problem.scale_tensor, graph, "scale_of", arguments) +
         "__device__ inline float score_scale(const Args& args) {\n"
         "  const Index at[4] = {0, 0, 0, 0};\n"
         "  R scale[1];\n"
         "  scale_of<1>(args, at, scale);\n"
         "  return (float)scale[0];\n}\n";
}

}  // namespace ashlar::cuda
