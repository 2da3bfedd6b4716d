// Graphs of one matmul or convolution each, for tests of all tensor-core engines.
#pragma once

#include <array>
#include <ashlar/ashlar.hpp>
#include <optional>
#include <vector>

namespace ashlar::cuda {

struct MatrixGraph {
  DType dtype = bf16;
  std::int64_t rows = 4096, columns = 4096, depth = 4096, batches = 1;
  bool a_turned = false, b_turned = true;  // column-major
  DType result = bf16;
  bool fused = false;                 // bias, relu, residual
  std::optional<DType> weights = {};  // stored type of b, times a scale per column

  Graph graph() const {
    Graph g;
    const auto matrix = [&](const char* name, std::int64_t m, std::int64_t n, DType type,
                            bool turned) {
      return turned ? g.transpose(g.input(name, {batches, n, m}, type), {0, 2, 1})
                    : g.input(name, {batches, m, n}, type);
    };
    const Value a = matrix("a", rows, depth, dtype, a_turned);
    Value b = matrix("b", depth, columns, weights.value_or(dtype), b_turned);
    if (weights)
      b = g.pointwise(PointwiseMode::mul, std::array{b, g.input("scale", {1, 1, columns}, f32)}, {},
                      {.dtype = dtype});
    Value c = g.matmul(a, b);
    if (fused)
      c = relu(c + g.input("bias", {1, 1, columns}, f32)) +
          g.input("residual", {batches, rows, columns}, result);
    g.output("c", c, {.dtype = result});
    return g;
  }
};

enum class ConvDirection : std::uint8_t { forward, data, filter };
inline constexpr std::array kConvDirections = {ConvDirection::forward, ConvDirection::data,
                                               ConvDirection::filter};

struct ConvGraph {
  DType dtype = bf16;
  ConvDirection direction = ConvDirection::forward;
  std::int64_t images = 64, channels = 256, filters = 256, groups = 1;
  Dims extent = {28, 28}, window = {3, 3};
  ConvAttributes op = {.padding = {1, 1}};
  Layout layout = channels_last;
  bool fused = false;                        // bias, residual, relu of the forward direction
  std::optional<Layout> result_layout = {};  // if different

  Graph graph() const {
    Dims x = {images, channels}, w = {filters, channels / groups};
    for (int axis = 0; axis < extent.rank(); ++axis) {
      x.push_back(extent[axis]);
      w.push_back(window[axis]);
    }
    Graph sizes;
    const Dims y = sizes.conv(sizes.input("x", x, f32), sizes.input("w", w, f32), op).dims();
    Graph g;
    const auto input = [&](const char* name, const Dims& dims) {
      return g.input(name, dims, dtype, layout);
    };
    const ashlar::OutputSpec stored{.dtype = dtype == DType::i8 ? f32 : dtype,
                                    .layout = result_layout.value_or(layout)};
    if (direction == ConvDirection::data) {
      g.output("dx", g.conv_backward_data(input("dy", y), input("w", w), op, {.dims = x}), stored);
    } else if (direction == ConvDirection::filter) {
      g.output("dw", g.conv_backward_filter(input("x", x), input("dy", y), op, {.dims = w}),
               stored);
    } else {
      Value sum = g.conv(input("x", x), input("w", w), op);
      if (fused) {
        Dims bias = y;
        for (int axis = 0; axis < bias.rank(); ++axis)
          if (axis != 1) bias[axis] = 1;
        sum = relu(sum + g.input("bias", bias, f32, layout) + input("residual", y));
      }
      g.output("y", sum, stored);
    }
    return g;
  }
};

struct ExpertsGraph {
  MoeMode mode = MoeMode::none;
  std::int64_t rows = 8192, depth = 2048, columns = 1024, experts = 8, top_k = 2;
  DType dtype = bf16;

  Graph graph() const {
    using Op = MoeGroupedMatmul;
    Graph g;
    Op op;
    op.mode = mode;
    op.top_k = top_k;
    const std::int64_t tokens = mode == MoeMode::gather ? rows / top_k : rows;
    const Layout by_column(Dims{depth * columns, 1, depth});
    std::vector<Operand<Op>> operands = {
        {Op::first_token_offset, g.input("first", {experts, 1, 1}, i32)},
        {Op::token, g.input("token", {1, tokens, depth}, dtype)},
        {Op::weight, g.input("weight", {experts, depth, columns}, dtype, by_column)}};
    if (mode != MoeMode::none)
      operands.push_back({Op::token_index, g.input("index", {1, rows, 1}, i32)});
    if (mode == MoeMode::scatter)
      operands.push_back({Op::token_ks, g.input("ks", {1, rows, 1}, i32)});
    g.output("y", relu(g.apply(op, operands, {Op::output})));
    return g;
  }
};

// Its gradients; the weight gradient is added to an existing tensor, in f32.
struct ExpertsGradientGraph {
  MoeMode mode = MoeMode::none;
  std::int64_t rows = 8192, depth = 2048, columns = 1024, experts = 8, groups = experts, top_k = 2;
  DType dtype = bf16;
  bool by_column = false;  // column-major weights and gradient
  bool of_weights = true, of_tokens = true;

  Graph graph() const {
    using Op = MoeGroupedMatmulBackward;
    Graph g;
    Op op;
    op.mode = mode;
    op.top_k = top_k;
    const std::int64_t tokens = mode == MoeMode::gather ? rows / top_k : rows;
    const Dims weight = {experts, depth, columns};
    const Layout layout =
        by_column ? Layout(Dims{depth * columns, 1, depth}) : Layout(row_major.strides_for(weight));
    std::vector<Operand<Op>> operands = {
        {Op::first_token_offset, g.input("first", {groups, 1, 1}, i32)},
        {Op::doutput, g.input("doutput", {1, rows, columns}, dtype)},
        {Op::token, g.input("token", {1, tokens, depth}, dtype)},
        {Op::weight, g.input("weight", weight, dtype, layout)}};
    if (mode != MoeMode::none)
      operands.push_back({Op::token_index, g.input("index", {1, rows, 1}, i32)});
    if (mode == MoeMode::scatter)
      operands.push_back({Op::token_ks, g.input("ks", {1, rows, 1}, i32)});
    std::vector<ashlar::Wanted<Op>> wanted = {Op::dweight};
    if (of_tokens) wanted.emplace_back(Op::dtoken);
    const auto results = g.apply(op, operands, wanted);
    if (of_weights)
      g.output("dweight", results[Op::dweight] + g.input("before", weight, f32, layout),
               {.dtype = f32});
    if (of_tokens) g.output("dtoken", results[Op::dtoken]);
    return g;
  }
};

}  // namespace ashlar::cuda
