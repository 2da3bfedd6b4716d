#include "cuda/engines/row_norm/row_text.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cuda/text/program_text.hpp"

namespace ashlar::cuda {

namespace {

// Whether elements can stay in registers as they are in memory.
bool is_kept_as_words(const PointwiseProgram& program, const Graph& graph) {
  if (!program.is_plain_load() || program.steps[0].round_to) return false;
  const View& view = program.steps[0].view;
  const TensorKind kind = graph.tensor(view.tensor).kind;
  return view.strides[view.strides.rank() - 1] == 1 && bit_width(view.dtype) >= 8 &&
         kind != TensorKind::scalar && kind != TensorKind::constant;
}

struct SourceText {
  bool is_present = true;
  std::string held, fetch, values, forget = {};
};
std::string print(const std::string& name, const SourceText& source) {
  return fmt::format(
      "struct {} {{\n"
      "  static const bool kPresent = {};\n"
      "  template <int kCount> {};\n"
      "  template <int kCount>\n"
      "  __device__ static void fetch(const Args& args, const Index (&at)[kRank],\n"
      "                               Held<kCount>& held) {{ {} }}\n"
      "  template <int kCount>\n"
      "  __device__ static void values(const Held<kCount>& held, R (&to)[kCount]) {{ {} }}\n"
      "  template <int kCount>\n"
      "  __device__ static void forget(Held<kCount>& held, uint32 zero) {{ {} }}\n"
      "}};\n",
      name, source.is_present, source.held, source.fetch, source.values, source.forget);
}

}  // namespace

std::string print_source(const PointwiseProgram& program, const Graph& graph,
                         const std::string& name, bool is_read_once, Arguments& arguments) {
  if (program.empty())
    return print(name, {.is_present = false, .held = "struct Held {}", .fetch = "", .values = ""});
  if (!is_kept_as_words(program, graph)) {
    const std::string function = name + "_program";
    return print_program(program, graph, function, arguments) +
           print(name, {.held = "struct Held { R values[kCount]; }",
                        .fetch = function + "<kCount>(args, at, held.values);",
                        .values = "copy(held.values, to);"});
  }
  const View& view = program.steps[0].view;
  const std::string dtype = tag(view.dtype), type = dtype.substr(0, dtype.size() - 2);
  const std::string pointer = arguments.pointer(name + "_data", view);
  const int last = view.strides.rank() - 1;
  std::string index = fmt::format("at[{}]", last);
  for (int axis = 0; axis < last; ++axis)
    if (view.strides[axis] != 0 && program.space[axis] != 1)
      index +=
          fmt::format(" + at[{}] * (Index){}", axis,
                      arguments.number(fmt::format("{}_stride{}", name, axis), view.strides[axis]));
  return print(name, {.held = fmt::format("using Held = PackedWords<kCount, {}::Word>", type),
                      .fetch = fmt::format("held.template fetch<{}>((const {}::Word*){} + ({}));",
                                           is_read_once, type, pointer, index),
                      .values = fmt::format("widen_words({}, held, to);", dtype),
                      .forget = "held.forget_all(zero);"});
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
