// The text form of a graph: one line per bound tensor and one per node.
#include <fmt/format.h>

#include "graph/enum_names.hpp"
#include "graph/graph_data.hpp"
#include "graph/op_traits.hpp"
#include "graph/visit_attributes.hpp"

namespace ashlar {

namespace {

// Collects the attributes that differ from the defaults as "name=value".
struct AttributePrinter {
  std::string text;

  void operator()(std::string_view name, const Dims& value) {
    if (!value.empty()) put(name, to_string(value));
  }
  void operator()(std::string_view name, double value) { put(name, fmt::format("{}", value)); }
  void operator()(std::string_view name, std::int64_t value) {
    put(name, fmt::format("{}", value));
  }
  void operator()(std::string_view name, bool value) { put(name, value ? "true" : "false"); }
  template <class T>
  void operator()(std::string_view name, const std::optional<T>& value) {
    if (value) (*this)(name, *value);
  }
  void operator()(std::string_view name, const ScoreProgram& program) {
    if (program.empty()) return;
    std::string steps;
    for (const ScoreStep& step : program) {
      AttributePrinter printer;
      ScoreStep::attributes(step, printer);
      steps += fmt::format("{}{{{}}}", steps.empty() ? "" : " ", printer.text);
    }
    put(name, steps);
  }
  template <class E>
  requires std::is_enum_v<E>
  void operator()(std::string_view name, E value) { put(name, std::string(enum_name(value))); }

  void put(std::string_view name, const std::string& value) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ", ", name, value);
  }
};

// One attribute rendered alone, so that it can be compared with its default.
std::vector<std::string> printed_attributes(const Op& op) {
  std::vector<std::string> lines;
  visit_attributes(op, [&](std::string_view name, const auto& value) {
    AttributePrinter printer;
    printer(name, value);
    lines.push_back(printer.text);
  });
  return lines;
}

std::string describe(const Tensor& tensor) {
  return fmt::format("{}{}{}", to_string(tensor.dtype), to_string(tensor.dims),
                     tensor.strides == row_major.strides_for(tensor.dims)
                         ? ""
                         : " strides " + to_string(tensor.strides));
}

}  // namespace

bool same_attributes(const Op& a, const Op& b) {
  return a.index() == b.index() && printed_attributes(a) == printed_attributes(b);
}

std::string Graph::to_text() const {
  std::string text = fmt::format("graph {}\n", data_->name);
  for (std::size_t i = 0; i < data_->tensors.size(); ++i) {
    const Tensor& tensor = data_->tensors[i];
    if (tensor.kind == TensorKind::intermediate) continue;
    text += fmt::format("  {:<8} {}: {}", enum_name(tensor.kind), tensor.name, describe(tensor));
    if (tensor.kind == TensorKind::constant) text += fmt::format(" = {}", tensor.value);
    if (tensor.ragged_offset != kNoTensor)
      text += fmt::format(" ragged by {}", this->tensor(tensor.ragged_offset).name);
    text += '\n';
  }
  for (const Node& node : data_->nodes) {
    const OpTraits& traits = traits_of(node.op);
    std::string outputs, inputs;
    for (std::size_t i = 0; i < node.outputs.size(); ++i)
      if (node.outputs[i] != kNoTensor)
        outputs += fmt::format("{}{}: {}", outputs.empty() ? "" : ", ",
                               tensor(node.outputs[i]).name, describe(tensor(node.outputs[i])));
    const bool variadic = traits.inputs[0].need == Slot::Need::variadic;
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      if (node.inputs[i] != kNoTensor)
        inputs += fmt::format("{}{}={}", inputs.empty() ? "" : ", ",
                              traits.inputs[variadic ? 0 : i].name, tensor(node.inputs[i]).name);
    const auto values = printed_attributes(node.op);
    const auto defaults = printed_attributes(default_op(traits.name));
    for (std::size_t i = 0; i < values.size(); ++i)
      if (values[i] != defaults[i] && !values[i].empty())
        inputs += (inputs.empty() ? "" : ", ") + values[i];
    text +=
        fmt::format("  {} = {}({}) in {}\n", outputs, traits.name, inputs, to_string(node.compute));
  }
  return text;
}

}  // namespace ashlar
