#include "cuda/engines/row_norm/row_text.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cuda/text/program_text.hpp"

namespace ashlar::cuda {

namespace {

struct SourceText {
  bool is_present = true;
  std::string held, fetch, values;
  // For an operand that is kept raw.
  bool is_staged = false;
  std::string bytes = "0", forget = {}, prefetch = {}, to_pipeline = {}, from_pipeline = {};
};
std::string print(const std::string& name, const SourceText& source) {
  return fmt::format(
      "struct {} {{\n"
      "  static const bool kPresent = {}, kIsStaged = {};\n"
      "  template <int kCount> static constexpr int kBytes = {};\n"
      "  template <int kCount> struct Held {{ {} }};\n"
      "  template <int kCount>\n"
      "  __device__ static void fetch(const Args& args, const Index (&at)[kRank],\n"
      "                               Held<kCount>& held) {{\n{}  }}\n"
      "  template <int kCount>\n"
      "  __device__ static void values(const Args& args, const Index (&at)[kRank],\n"
      "                                const Held<kCount>& held, R (&to)[kCount]) {{\n{}  }}\n"
      "  template <int kCount>\n"
      "  __device__ static void prefetch(const Args& args, const Index (&at)[kRank]) {{\n{}  }}\n"
      "  template <int kCount, int kThreads>\n"
      "  __device__ static void to_pipeline(const Args& args, const Index (&at)[kRank],\n"
      "                                 uint8* slots) {{\n{}  }}\n"
      "  template <int kCount, int kThreads>\n"
      "  __device__ static void from_pipeline(uint8* slots, Held<kCount>& held) {{\n{}  }}\n"
      "  template <int kCount>\n"
      "  __device__ static void forget(Held<kCount>& held, uint32 zero) {{ {} }}\n"
      "}};\n",
      name, source.is_present, source.is_staged, source.bytes, source.held, source.fetch,
      source.values, source.prefetch, source.to_pipeline, source.from_pipeline, source.forget);
}

// Whether every row is read by its own threads only (no broadcast): streaming loads.
bool is_read_once(const View& view) {
  for (int axis = 0; axis + 1 < view.strides.rank(); ++axis)
    if (view.strides[axis] == 0 && view.dims[axis] != 1) return false;
  return view.strides.rank() > 1 && element_count(view.dims) > view.dims[view.dims.rank() - 1];
}

bool is_on_host(const Graph& graph, const View& view) {
  const TensorKind kind = graph.tensor(view.tensor).kind;
  return kind == TensorKind::scalar || kind == TensorKind::constant;
}

}  // namespace

std::vector<int> raw_loads(const PointwiseProgram& program) {
  constexpr double kCheapFlops = 6;
  constexpr int kMaxBits = 64;
  if (program.empty() || !program.stores.empty() || program.has_random() ||
      program.flops_per_element() > kCheapFlops)
    return {};
  std::vector<int> loads;
  int bits = 0;
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    const auto& step = program.steps[i];
    if (step.kind != PointwiseProgram::Step::Kind::load) continue;
    if (step.view.strides[step.view.strides.rank() - 1] != 1) continue;
    if (bit_width(step.view.dtype) < 8) return {};
    loads.push_back(static_cast<int>(i));
    bits += bit_width(step.view.dtype);
  }
  return bits <= kMaxBits ? loads : std::vector<int>{};
}

std::string print_source(const PointwiseProgram& program, const Graph& graph,
                         const std::string& name, Arguments& arguments,
                         bool materialises_prologue) {
  if (program.empty())
    return print(name, {.is_present = false, .held = "", .fetch = "", .values = ""});
  const std::string function = name + "_program";
  const std::vector<int> loads = raw_loads(program);
  const bool is_staged =
      !materialises_prologue && !loads.empty() &&
      std::none_of(loads.begin(), loads.end(), [&](int i) {
        return is_on_host(graph, program.steps[static_cast<std::size_t>(i)].view);
      });
  if (!is_staged)
    return print_program(program, graph, function, arguments) +
           print(name, {.held = "R values[kCount];",
                        .fetch = fmt::format("    {}<kCount>(args, at, held.values);\n", function),
                        .values = "    copy(held.values, to);\n"});

  // The program with the raw registers in place of its loads.
  PointwiseProgram rest = program;
  SourceText text;
  text.is_staged = true;
  std::string operands;
  for (std::size_t k = 0; k < loads.size(); ++k) {
    auto& step = rest.steps[static_cast<std::size_t>(loads[k])];
    const View view = step.view;
    step.kind = PointwiseProgram::Step::Kind::accumulator;
    step.row = static_cast<int>(k);
    step.view = {};
    const std::string dtype = tag(view.dtype), type = dtype.substr(0, dtype.size() - 2);
    const int last = view.strides.rank() - 1;
    std::string index = fmt::format("at[{}]", last);
    for (int axis = 0; axis < last; ++axis)
      if (view.strides[axis] != 0 && program.space[axis] != 1)
        index += fmt::format(
            " + at[{}] * (Index){}", axis,
            arguments.number(fmt::format("{}_stride{}_{}", name, k, axis), view.strides[axis]));
    const std::string words = fmt::format("PackedWords<kCount, {}::Word>", type);
    text.held += fmt::format("{} words{}; ", words, k);
    const std::string address =
        fmt::format("(const {}::Word*){} + ({})", type,
                    arguments.pointer(fmt::format("{}_data{}", name, k), view), index);
    text.fetch +=
        fmt::format("    held.words{}.template fetch<{}>({});\n", k, is_read_once(view), address);
    text.prefetch += fmt::format("    {}::prefetch({});\n", words, address);
    const std::string slots = fmt::format("slots + kThreads * ({})", text.bytes);
    text.to_pipeline +=
        fmt::format("    {}::template to_pipeline<kThreads>({}, {});\n", words, address, slots);
    text.from_pipeline +=
        fmt::format("    held.words{}.template from_pipeline<kThreads>({});\n", k, slots);
    text.bytes += fmt::format(" + {}::kBytes", words);
    text.values += fmt::format(
        "    R in{0}[kCount];\n    widen_words({1}, held.words{0}, in{0});\n", k, dtype);
    text.forget += fmt::format(
        "held.words{}.template forget_all<kCount % 2 == 0 && WidensPairs<R, {}>::value>(zero); ", k,
        type);
    operands += fmt::format("in{}, ", k);
  }
  text.values += fmt::format("    {}<kCount>(args, at, {}to);\n", function, operands);
  return print_program(rest, graph, function, arguments) + print(name, text);
}

std::string print_row_store(const PointwiseProgram& program, const Graph& graph,
                            const std::string& name, Arguments& arguments) {
  if (!program.empty()) return print_program(program, graph, name, arguments);
  return fmt::format(
      "template <int kCount>\n"
      "__device__ inline void {}(const Args&, const Index (&)[kRank], R (&)[kCount]) {{}}\n",
      name);
}

std::string print_statistic_store(const PointwiseProgram& program, const Graph& graph,
                                  const std::string& name, Arguments& arguments) {
  if (program.empty())
    return fmt::format("__device__ inline void {}(const Args&, const Index (&)[kRank], R) {{}}\n",
                       name);
  return print_store(program.stores[0].view, graph, name, arguments);
}

std::string print_statistic_load(const PointwiseProgram& program, const Graph& graph,
                                 const std::string& name, double otherwise, Arguments& arguments) {
  if (program.empty())
    return fmt::format(
        "__device__ inline R {}(const Args&, const Index (&)[kRank]) {{ return {}; }}\n", name,
        literal(otherwise));
  return print_program(program, graph, name + "_program", arguments) +
         fmt::format(
             "__device__ inline R {0}(const Args& args, const Index (&at)[kRank]) {{\n"
             "  R value[1];\n  {0}_program<1>(args, at, value);\n  return value[0];\n}}\n",
             name);
}

std::string print_number(const PointwiseProgram& program, const Graph& graph,
                         const std::string& name, double otherwise, Arguments& arguments) {
  if (program.empty())
    return fmt::format("__device__ inline R {}(const Args&) {{ return {}; }}\n", name,
                       literal(otherwise));
  return print_program(program, graph, name + "_program", arguments) +
         fmt::format(
             "__device__ inline R {0}(const Args& args) {{\n"
             "  const Index at[{1}] = {{}};\n"
             "  R value[1];\n  {0}_program<1>(args, at, value);\n  return value[0];\n}}\n",
             name, std::max(program.space.rank(), 1));
}

}  // namespace ashlar::cuda
