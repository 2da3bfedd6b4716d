#include "cuda/engines/generic/generic_kernel.hpp"

#include <algorithm>

#include "cuda/jit/kernel_text.hpp"
#include "cuda/text/program_text.hpp"
#include "graph/op_traits.hpp"

namespace ashlar::cuda {

namespace {

constexpr unsigned kThreads = 128;
constexpr std::int64_t kBlocksPerSm = 32;

// Prints the accessors of an operation's operands.
class Operands {
 public:
  Operands(const Graph& graph, const Region& region, Arguments& arguments)
      : graph_(graph), region_(region), arguments_(arguments) {}

  std::string print(int only_input) {
    const Anchor& anchor = *region_.anchor;
    const OpTraits& traits = traits_of(anchor.op);
    if (traits.is_variadic()) {
      add_input(std::string(traits.inputs[0].name), only_input);
    } else {
      for (std::size_t slot = 0; slot < traits.inputs.size(); ++slot)
        add_input(std::string(traits.inputs[slot].name), static_cast<int>(slot));
    }
    for (std::size_t slot = 0; slot < traits.outputs.size(); ++slot)
      add_output(std::string(traits.outputs[slot].name), slot);
    return std::move(text_);
  }
  void add_missing_input(const std::string& name) {
    text_ += fmt::format(
        "template <int N> __device__ inline R in_{0}(const Args&, const Index (&)[N]) {{\n"
        "  return 0;\n}}\n"
        "template <int N> __device__ inline int64 integer_{0}(const Args&, const Index (&)[N]) {{\n"
        "  return 0;\n}}\n",
        name);
  }
  void add_missing_output(const std::string& name) {
    text_ += fmt::format(
        "template <int N, class V>\n"
        "__device__ inline void put_{}(const Args&, const Index (&)[N], V) {{}}\n",
        name);
  }
  void add_shape(const std::string& name, const View& view) {
    text_ += constant("kHas_" + name, view.present()) +
             constant("kRank_" + name, view.present() ? view.dims.rank() : 0);
    arguments_.numbers(name + "_dims", view.present() ? view.dims : Dims{});
  }

 private:
  void add_input(const std::string& name, int number) {
    const auto slot = static_cast<std::size_t>(number);
    const View view = slot < region_.anchor->inputs.size() ? region_.anchor->inputs[slot] : View{};
    add_shape(name, view);
    if (!view.present()) return add_missing_input(name);
    const PointwiseProgram& prologue = region_.prologues[slot];
    text_ += print_program(prologue, graph_, "input_" + name, arguments_);
    text_ += fmt::format(
        "__device__ inline R in_{0}(const Args& args, const Index (&at)[{1}]) {{\n"
        "  R result[1];\n"
        "  input_{0}<1>(args, at, result);\n"
        "  return result[0];\n}}\n",
        name, std::max(view.dims.rank(), 1));
    if (prologue.is_plain_load() && !is_floating(view.dtype))
      text_ += print_integer_load(prologue.steps[0].view, graph_, "integer_" + name, arguments_);
  }

  void add_output(const std::string& name, std::size_t slot) {
    const View view =
        slot < region_.anchor->outputs.size() ? region_.anchor->outputs[slot] : View{};
    add_shape(name, view);
    if (slot == 0) {
      text_ += print_program(region_.epilogue, graph_, "epilogue", arguments_);
      text_ += fmt::format(
          "__device__ inline void put_{}(const Args& args, const Index (&at)[{}], R value) {{\n"
          "  R accumulator[1] = {{value}};\n{}}}\n",
          name, std::max(region_.epilogue.space.rank(), 1),
          region_.epilogue.reduced.empty()
              ? "  epilogue<1>(args, at, accumulator);\n"
              : "  SlotTails tails;\n  epilogue<1>(args, at, accumulator, tails);\n");
    } else if (view.present()) {
      text_ += print_store(view, graph_, "put_" + name, arguments_);
    } else {
      add_missing_output(name);
    }
  }

  const Graph& graph_;
  const Region& region_;
  Arguments& arguments_;
  std::string text_;
};

}  // namespace

void GenericKernel::constant(const std::string& name, std::int64_t value) {
  constants_ += cuda::constant(name, value);
}

void GenericKernel::element_type(const std::string& name, DType dtype) {
  const std::string value = tag(dtype);  // "bf16()"
  constants_ += fmt::format("typedef {} {};\n", value.substr(0, value.size() - 2), name);
}

void GenericKernel::per_axis(const std::string& name, const Dims& values, int axes,
                             std::int64_t missing) {
  numbers(name, values.empty() ? Dims::filled(axes, missing) : values);
}

void GenericKernel::scratch(const std::string& name, std::int64_t bytes) {
  arguments_.scratch(name, scratch_.add(name, bytes));
}

LaunchDesign GenericKernel::launch(int number, const Graph& graph,
                                   const DeviceProps& device) const {
  const Pass& pass = passes_[static_cast<std::size_t>(number)];
  LaunchDesign launch;
  launch.arguments = arguments_;
  launch.arguments.number("units", pass.units);
  launch.arguments.number("begin", pass.begin);
  launch.arguments.number("pass", number);
  launch.arguments.number("team", pass.team ? 1 : 0);
  std::string functions;
  if (region_.anchor) {
    Operands operands(graph, region_, launch.arguments);
    for (const std::string& name : missing_inputs_) {
      operands.add_shape(name, {});
      operands.add_missing_input(name);
    }
    for (const std::string& name : missing_outputs_) {
      operands.add_shape(name, {});
      operands.add_missing_output(name);
    }
    functions = operands.print(pass.input);
  } else {
    launch.arguments.numbers("space", region_.epilogue.space);
    functions = cuda::constant("kRank", region_.epilogue.space.rank()) +
                print_program(region_.epilogue, graph, "epilogue", launch.arguments);
  }
  const std::string head = fmt::format("typedef {} R;\ntypedef int64 Index;\n",
                                       region_.precision() == f64 ? "double" : "float") +
                           cuda::constant("kThreads", kThreads) + constants_ +
                           launch.arguments.struct_text() + functions;
  std::vector<std::string_view> files(files_.begin(), files_.end());
  files.push_back(entry_);
  launch.source = {"generic", assemble(files, head)};
  launch.function = "generic";
  launch.threads = kThreads;
  launch.grid.x = static_cast<unsigned>(
      std::min(pass.team ? pass.units : (pass.units + kThreads - 1) / kThreads,
               device.compute_units * kBlocksPerSm));
  return launch;
}

KernelDesign GenericKernel::design(const Graph& graph, const DeviceProps& device) const {
  KernelDesign design;
  design.scratch = scratch_;
  for (std::size_t number = 0; number < passes_.size(); ++number)
    if (passes_[number].units > 0)
      design.launches.push_back(launch(static_cast<int>(number), graph, device));
  return design;
}

}  // namespace ashlar::cuda
