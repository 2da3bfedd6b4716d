#include "cuda/engines/channel_norm_text.hpp"

#include <fmt/format.h>

#include "cuda/engines/channel_axes.hpp"
#include "cuda/text/program_text.hpp"

namespace ashlar::cuda {

namespace {

class Printer {
 public:
  Printer(const Graph& graph, const Region& region, const ChannelNormShape& shape,
          Arguments& arguments)
      : graph_(graph), region_(region), shape_(shape), arguments_(arguments) {}

  std::string print_programs() {
    std::string text =
        print_program(without_stores(shape_.x), graph_, "x_of", arguments_) +
        with_streaming_stores(print_program(shape_.result, graph_, "epilogue", arguments_));
    return text + (shape_.forward != nullptr ? print_forward() : print_backward());
  }

 private:
  std::string reader(int slot, const std::string& name, const std::string& absent) {
    return print_reader(input_program(region_, slot), graph_, name, absent, arguments_);
  }
  std::string writer(int slot, const std::string& name) {
    return print_writer(output_view(region_, slot), graph_, name, arguments_);
  }

  std::string print_forward() {
    const NormForward& op = *shape_.forward;
    const bool running = !input_program(region_, NormForward::running_mean).empty();
    std::string text = reader(NormForward::scale, "scale_of", "(R)1") +
                       reader(NormForward::bias, "bias_of", "(R)0") +
                       reader(NormForward::epsilon_tensor, "epsilon_of", literal(op.epsilon)) +
                       reader(NormForward::momentum_tensor, "momentum_of", literal(op.momentum)) +
                       reader(NormForward::mean, "mean_of", "(R)0") +
                       reader(NormForward::inv_variance, "inv_variance_of", "(R)0") +
                       reader(NormForward::running_mean, "running_mean_of", "(R)0") +
                       reader(NormForward::running_var, "running_var_of", "(R)0") +
                       writer(NormForward::out_mean, "keep_mean") +
                       writer(NormForward::out_inv_variance, "keep_inv_variance") +
                       writer(NormForward::next_running_mean, "keep_running_mean") +
                       writer(NormForward::next_running_var, "keep_running_var");
    text += given_statistics(running ? "  mean = running_mean_of(args, outer, group);\n"
                                       "  inv_variance = (R)1 / sqrt(running_var_of(args, outer, "
                                       "group) + epsilon_of(args, 0, 0));\n"
                                     : kGiven);
    // The running variance is unbiased; 0 for a single element.
    return text + store_statistics(
                      "  keep_mean(args, outer, group, mean);\n"
                      "  keep_inv_variance(args, outer, group, inv_variance);\n"
                      "  const R m = momentum_of(args, 0, 0);\n"
                      "  const R unbiased = count > (R)1 ? variance * (count / (count - (R)1)) "
                      ": variance;\n"
                      "  keep_running_mean(args, outer, group, ((R)1 - m) * "
                      "running_mean_of(args, outer, group) + m * mean);\n"
                      "  keep_running_var(args, outer, group, ((R)1 - m) * "
                      "running_var_of(args, outer, group) + m * unbiased);\n");
  }

  std::string print_backward() {
    const NormBackward& op = *shape_.backward;
    // dy is read twice, but stored only once where it is an output too.
    return print_program(shape_.dy, graph_, "dy_of", arguments_) +
           print_program(without_stores(shape_.dy), graph_, "read_dy", arguments_) +
           reader(NormBackward::scale, "scale_of", "(R)1") +
           reader(NormBackward::epsilon_tensor, "epsilon_of", literal(op.epsilon)) +
           reader(NormBackward::mean, "mean_of", "(R)0") +
           reader(NormBackward::inv_variance, "inv_variance_of", "(R)0") +
           writer(NormBackward::dscale, "keep_dscale") + writer(NormBackward::dbias, "keep_dbias") +
           given_statistics(kGiven) + store_statistics("") +
           "__device__ inline void store_parameter_gradients(const Args& args, Index channel, R "
           "dbias, "
           "R dscale) {\n"
           "  keep_dbias(args, 0, channel, dbias);\n"
           "  keep_dscale(args, 0, channel, dscale);\n}\n";
  }

  static constexpr const char* kGiven =
      "  mean = mean_of(args, outer, group);\n"
      "  inv_variance = inv_variance_of(args, outer, group);\n";
  static std::string given_statistics(const std::string& body) {
    return "__device__ inline void given_statistics(const Args& args, Index outer, Index group, "
           "R& mean, R& inv_variance) {\n" +
           body + "}\n";
  }
  static std::string store_statistics(const std::string& body) {
    return "__device__ inline void store_statistics(const Args& args, Index outer, Index group, "
           "R mean, R variance, R inv_variance, R count) {\n" +
           body + "}\n";
  }

  const Graph& graph_;
  const Region& region_;
  const ChannelNormShape& shape_;
  Arguments& arguments_;
};

}  // namespace

std::string print_channel_norm(const Graph& graph, const Region& region,
                               const ChannelNormShape& shape, Arguments& arguments) {
  return Printer(graph, region, shape, arguments).print_programs();
}

std::string print_addresses(const ChannelNormShape& shape, Arguments& arguments) {
  const auto address = [&](const std::string& name, const PointwiseProgram* program) {
    std::string body = "  return nullptr;\n";
    if (program != nullptr && program->is_plain_load()) {
      const View& view = program->steps[static_cast<std::size_t>(program->result)].view;
      std::string position = "(int64)0";
      for (int axis = 0; axis < view.dims.rank(); ++axis)
        if (view.dims[axis] > 1)
          position += fmt::format(
              " + (int64)at[{}] * {}", axis,
              arguments.number(fmt::format("{}_stride{}", name, axis), view.strides[axis]));
      body =
          fmt::format("  return (const char*){} + ({}) * {};\n",
                      arguments.pointer(name + "_data", view), position, bit_width(view.dtype) / 8);
    }
    return fmt::format(
        "__device__ inline const void* {}(const Args& args, const Index (&at)[kRank]) {{\n{}}}\n",
        name, body);
  };
  return address("x_address", &shape.x) +
         address("dy_address", shape.backward != nullptr ? &shape.dy : nullptr);
}

std::string print_prefetches(const Graph& graph, const ChannelNormShape& shape,
                             Arguments& arguments) {
  std::string text =
      with_prefetches(print_program(without_stores(shape.x), graph, "x_ahead", arguments));
  if (shape.backward != nullptr)
    text += with_prefetches(print_program(without_stores(shape.dy), graph, "dy_ahead", arguments));
  return text;
}

}  // namespace ashlar::cuda
