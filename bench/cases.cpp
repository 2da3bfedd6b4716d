#include "cases.hpp"

#include <array>

namespace ashlar::bench {

namespace {

struct MatmulCase {
  const char* name;
  Dims a, b;
  DType in = f32, out = f32;
};

const std::array kMatmuls = {
    MatmulCase{"matmul_f32_1024", {1, 1024, 1024}, {1, 1024, 1024}},
    MatmulCase{"matmul_f32_8x4096x4096", {1, 8, 4096}, {1, 4096, 4096}},
    MatmulCase{"matmul_f32_16x256x256x64", {16, 256, 64}, {16, 64, 256}},
    MatmulCase{"matmul_bf16_1024", {1, 1024, 1024}, {1, 1024, 1024}, bf16, bf16},
    MatmulCase{"matmul_i8_1024", {1, 1024, 1024}, {1, 1024, 1024}, i8, i32},
};

enum class Pass { forward, backward_data, backward_filter };

struct ConvCase {
  const char* name;
  std::int64_t n, c, k;
  Dims image;
  std::int64_t filter, stride, padding, groups;
  Layout layout;
  Pass pass = Pass::forward;
};

const std::vector<ConvCase>& convolutions() {
  static const std::vector<ConvCase> cases = {
      {"conv_3x3_nhwc", 4, 64, 64, {56, 56}, 3, 1, 1, 1, channels_last},
      {"conv_3x3_nchw", 4, 64, 64, {56, 56}, 3, 1, 1, 1, row_major},
      {"conv_1x1_256_64", 4, 256, 64, {56, 56}, 1, 1, 0, 1, channels_last},
      {"conv_3x3_stride2", 4, 64, 128, {56, 56}, 3, 2, 1, 1, channels_last},
      {"conv_stem_7x7_stride2", 4, 3, 64, {224, 224}, 7, 2, 3, 1, channels_last},
      {"conv_depthwise_3x3_nhwc", 4, 96, 96, {56, 56}, 3, 1, 1, 96, channels_last},
      {"conv_depthwise_3x3_nchw", 4, 96, 96, {56, 56}, 3, 1, 1, 96, row_major},
      {"conv_grouped_3x3", 4, 128, 128, {28, 28}, 3, 1, 1, 32, channels_last},
      {"conv3d_3x3x3", 1, 32, 32, {16, 28, 28}, 3, 1, 1, 1, channels_last},
      {"conv_3x3_backward_data",
       4,
       64,
       64,
       {56, 56},
       3,
       1,
       1,
       1,
       channels_last,
       Pass::backward_data},
      {"conv_3x3_backward_filter",
       4,
       64,
       64,
       {56, 56},
       3,
       1,
       1,
       1,
       channels_last,
       Pass::backward_filter},
      {"conv_3x3_stride2_backward_data",
       4,
       64,
       128,
       {56, 56},
       3,
       2,
       1,
       1,
       channels_last,
       Pass::backward_data},
      {"conv_3x3_stride2_backward_filter",
       4,
       64,
       128,
       {56, 56},
       3,
       2,
       1,
       1,
       channels_last,
       Pass::backward_filter},
      {"conv_depthwise_backward_data",
       4,
       96,
       96,
       {56, 56},
       3,
       1,
       1,
       96,
       channels_last,
       Pass::backward_data},
      {"conv_depthwise_backward_filter",
       4,
       96,
       96,
       {56, 56},
       3,
       1,
       1,
       96,
       channels_last,
       Pass::backward_filter},
  };
  return cases;
}

Graph conv_graph(const ConvCase& shape) {
  const int spatial = shape.image.rank();
  Dims x_dims = {shape.n, shape.c}, y_dims = {shape.n, shape.k},
       w_dims = {shape.k, shape.c / shape.groups};
  for (const std::int64_t extent : shape.image) {
    x_dims.push_back(extent);
    w_dims.push_back(shape.filter);
    y_dims.push_back((extent + 2 * shape.padding - shape.filter) / shape.stride + 1);
  }
  const ConvAttributes attributes{.padding = Dims::filled(spatial, shape.padding),
                                  .stride = Dims::filled(spatial, shape.stride)};
  Graph g(shape.name);
  const auto input = [&](const char* name, const Dims& dims) {
    return g.input(name, dims, f32, shape.layout);
  };
  switch (shape.pass) {
    case Pass::forward: {
      const Value x = input("x", x_dims), w = input("w", w_dims);
      g.output("y", g.conv(x, w, attributes, {.layout = shape.layout}));
      break;
    }
    case Pass::backward_data: {
      const Value dy = input("dy", y_dims), w = input("w", w_dims);
      g.output("dx",
               g.conv_backward_data(dy, w, attributes, {.dims = x_dims, .layout = shape.layout}));
      break;
    }
    case Pass::backward_filter: {
      const Value x = input("x", x_dims), dy = input("dy", y_dims);
      g.output("dw",
               g.conv_backward_filter(x, dy, attributes, {.dims = w_dims, .layout = shape.layout}));
      break;
    }
  }
  return g;
}

Graph matmul_graph(const MatmulCase& shape) {
  Graph g(shape.name);
  const Value a = g.input("a", shape.a, shape.in), b = g.input("b", shape.b, shape.in);
  g.output("c", g.matmul(a, b, {.dtype = shape.out}));
  return g;
}

Graph attention_graph() {
  Graph g("attention_prefill");
  const Dims dims = {1, 8, 1024, 64};
  const Value q = g.input("q", dims, f32), k = g.input("k", dims, f32), v = g.input("v", dims, f32);
  g.output("o", g.attention(q, k, v).first);
  return g;
}

Graph pool_graph(ResampleMode mode) {
  Graph g("pool");
  const Value x = g.input("x", {4, 64, 112, 112}, f32, channels_last);
  g.output("y",
           g.resample(x, {.mode = mode, .window = {3, 3}, .stride = {2, 2}, .padding = {1, 1}}));
  return g;
}

Graph softmax_graph() {
  Graph g("softmax");
  g.output("y", g.softmax(g.input("x", {4096, 1000}, f32)));
  return g;
}

void output_statistics(Graph& g, const NormResults& results) {
  g.output("y", results.y);
  g.output("mean", results.mean);
  g.output("inv_variance", results.inv_variance);
}

void output_gradients(Graph& g, const NormGradients& gradients) {
  g.output("dx", gradients.dx);
  g.output("dscale", gradients.dscale);
  g.output("dbias", gradients.dbias);
}

struct NormCase {
  const char* name;
  NormMode mode;
  Dims x, scale, statistics;
  Layout layout;
};

const NormCase kLayerNorm = {"layer_norm", NormMode::layer, {4096, 1024},
                             {1, 1024},    {4096, 1},       row_major};
const NormCase kBatchNorm = {"batch_norm_nhwc", NormMode::batch, {8, 64, 56, 56},
                             {1, 64, 1, 1},     {1, 64, 1, 1},   channels_last};

Graph norm_graph(const NormCase& shape) {
  Graph g(shape.name);
  const Value x = g.input("x", shape.x, f32, shape.layout),
              scale = g.input("scale", shape.scale, f32), bias = g.input("bias", shape.scale, f32);
  output_statistics(g, g.norm(x, scale, bias, {.mode = shape.mode}));
  return g;
}

Graph norm_backward_graph(const NormCase& shape) {
  Graph g(shape.name);
  const Value x = g.input("x", shape.x, f32, shape.layout),
              dy = g.input("dy", shape.x, f32, shape.layout),
              scale = g.input("scale", shape.scale, f32),
              mean = g.input("mean", shape.statistics, f32),
              inv_variance = g.input("inv_variance", shape.statistics, f32);
  output_gradients(g, g.norm_backward(x, dy, scale, {.mode = shape.mode}, mean, inv_variance));
  return g;
}

const Dims kSixteenMillion = {1, 16, 1024, 1024};

Graph gelu_graph() {
  Graph g("gelu");
  g.output("y", gelu(g.input("x", kSixteenMillion, f32)));
  return g;
}

Graph add_graph() {
  Graph g("add");
  const Value a = g.input("a", kSixteenMillion, f32), b = g.input("b", kSixteenMillion, f32);
  g.output("y", a + b);
  return g;
}

Graph sum_graph(const Dims& axes) {
  Graph g("sum");
  g.output("y", g.reduce(g.input("x", {4096, 4096}, f32), ReductionMode::add, axes));
  return g;
}

Graph transpose_graph() {
  Graph g("transpose");
  const Value x = g.input("x", {4096, 4096}, f32);
  g.output("y", g.transpose(x, {1, 0}, {.layout = row_major}));
  return g;
}

Graph relayout_graph(const Layout& from, const Layout& to) {
  Graph g("relayout");
  const std::array operands = {g.input("x", {8, 64, 112, 112}, f32, from)};
  g.output("y", g.pointwise(PointwiseMode::identity, operands, {}, {.layout = to}));
  return g;
}

double count(const Dims& dims) { return static_cast<double>(element_count(dims)); }

class Arithmetic {
 public:
  Arithmetic(const Graph& graph, const Node& node) : graph_(graph), node_(node) {}

  double operator()(const ConvForward&) const { return conv(out(), in(ConvForward::w)); }
  double operator()(const ConvBackwardData&) const {
    return conv(in(ConvBackwardData::dy), in(ConvBackwardData::w));
  }
  double operator()(const ConvBackwardFilter&) const {
    return conv(in(ConvBackwardFilter::dy), out());
  }
  double operator()(const Matmul&) const {
    const Dims& a = in(Matmul::a);
    return 2 * count(out()) * static_cast<double>(a[a.rank() - 1]);
  }
  double operator()(const AttentionForward&) const {
    const Dims &q = in(AttentionForward::q), &v = in(AttentionForward::v);
    return 2 * static_cast<double>(q[0] * q[1] * q[2] * v[2]) * static_cast<double>(q[3] + v[3]);
  }
  template <class Op>
  double operator()(const Op&) const {
    return 0;
  }

 private:
  const Dims& in(int slot) const {
    return graph_.tensor(node_.inputs[static_cast<std::size_t>(slot)]).dims;
  }
  const Dims& out() const { return graph_.tensor(node_.outputs[0]).dims; }
  // Each element of y takes one multiply-add per weight of its output channel.
  static double conv(const Dims& y, const Dims& w) {
    return 2 * count(y) * count(w) / static_cast<double>(w[0]);
  }

  const Graph& graph_;
  const Node& node_;
};

}  // namespace

std::vector<Case> foundation_cases() {
  std::vector<Case> cases;
  for (const MatmulCase& shape : kMatmuls)
    cases.push_back({shape.name, [&shape] { return matmul_graph(shape); }});
  for (const ConvCase& shape : convolutions())
    cases.push_back({shape.name, [&shape] { return conv_graph(shape); }});
  cases.push_back({"attention_prefill_s1024", attention_graph});
  cases.push_back({"max_pool_3x3_stride2", [] { return pool_graph(ResampleMode::maxpool); }});
  cases.push_back(
      {"avg_pool_3x3_stride2", [] { return pool_graph(ResampleMode::avgpool_exclude_padding); }});
  cases.push_back({"softmax_4096x1000", softmax_graph});
  cases.push_back({"layer_norm_4096x1024", [] { return norm_graph(kLayerNorm); }});
  cases.push_back({"layer_norm_backward", [] { return norm_backward_graph(kLayerNorm); }});
  cases.push_back({"batch_norm_nhwc", [] { return norm_graph(kBatchNorm); }});
  cases.push_back({"batch_norm_nhwc_backward", [] { return norm_backward_graph(kBatchNorm); }});
  cases.push_back({"gelu_16m", gelu_graph});
  cases.push_back({"add_16m", add_graph});
  cases.push_back({"sum_rows_4096x4096", [] { return sum_graph({1}); }});
  cases.push_back({"sum_columns_4096x4096", [] { return sum_graph({0}); }});
  cases.push_back({"sum_all_16m", [] { return sum_graph({}); }});
  cases.push_back({"transpose_4096x4096", transpose_graph});
  cases.push_back({"nchw_to_nhwc", [] { return relayout_graph(row_major, channels_last); }});
  cases.push_back({"nhwc_to_nchw", [] { return relayout_graph(channels_last, row_major); }});
  return cases;
}

Range input_range(const Tensor& tensor) {
  if (tensor.dtype == i8) return {-127, 127};
  if (tensor.name == "inv_variance") return {0.5, 1.5};
  return {};
}

double arithmetic(const Graph& graph) {
  double total = 0;
  for (const Node& node : graph.nodes()) total += std::visit(Arithmetic(graph, node), node.op);
  return total;
}

double traffic(const Graph& graph) {
  double total = 0;
  for (const TensorId id : graph.bound_tensors())
    total += static_cast<double>(byte_size(graph.tensor(id)));
  return total;
}

}  // namespace ashlar::bench
