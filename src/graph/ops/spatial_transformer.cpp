// Definition of the spatial transformer.
#include "graph/ops/define.hpp"

namespace ashlar {

namespace {

// Positions have two or three coordinates.
constexpr int kMinAxes = 2, kMaxAxes = 3;

// `size` of a generator: one extent per spatial axis.
void check_size(NodeContext& node, const GridAttributes& op, int spatial) {
  if (op.size.rank() != spatial)
    node.reject("size", op.size, "{} extents, one per spatial axis", spatial);
  for (std::int64_t extent : op.size)
    if (extent < 0) node.reject("size", op.size, "extents of at least 0");
}

Dims grid_dims(std::int64_t batch, const Dims& size) {
  Dims grid = {batch};
  for (std::int64_t extent : size) grid.push_back(extent);
  grid.push_back(size.rank());
  return grid;
}

// Checks that x [N, C, in...] and grid [N, out..., d] match; returns the dims of y.
Dims check_sampling(NodeContext& node, int x_slot, int grid_slot) {
  for (int slot : {x_slot, grid_slot}) {
    node.require_rank(slot, kMinAxes + 2, kMaxAxes + 2);
    node.require_floating(slot);
  }
  const Dims& x = node.input(x_slot).dims;
  const Dims& grid = node.input(grid_slot).dims;
  const int spatial = x.rank() - 2;
  if (grid.rank() != x.rank())
    node.reject(fmt::format("rank of {}", node.input_name(grid_slot)), grid.rank(), "{}, that of x",
                x.rank());
  if (grid[0] != x[0]) node.reject("batch of grid", grid[0], "{}, that of x", x[0]);
  if (grid[spatial + 1] != spatial)
    node.reject("last extent of grid", grid[spatial + 1],
                "{}, one coordinate per spatial axis of x", spatial);
  Dims y = {x[0], x[1]};
  for (int axis = 0; axis < spatial; ++axis) y.push_back(grid[axis + 1]);
  for (int axis = 0; axis < spatial; ++axis)
    if (x[axis + 2] == 0 && element_count(y) > 0)
      node.reject(fmt::format("spatial axis {} of x", axis), 0,
                  "at least 1 element to sample from");
  return y;
}

void infer_grid_generator_forward(NodeContext& node) {
  using Generator = GridGeneratorForward;
  const auto& op = node.op<Generator>();
  node.require_rank(Generator::theta, 3, 3);
  node.require_floating(Generator::theta);
  const Tensor& theta = node.input(Generator::theta);
  const std::int64_t rows = theta.dims[1];
  if (rows < kMinAxes || rows > kMaxAxes || theta.dims[2] != rows + 1)
    node.reject(fmt::format("dims of {}", node.input_name(Generator::theta)), theta.dims,
                "[N, 2, 3] or [N, 3, 4]");
  check_size(node, op, static_cast<int>(rows));
  node.infer_dims(Generator::grid, grid_dims(theta.dims[0], op.size));
  node.infer_dtype(Generator::grid, theta.dtype);
  node.infer_strides_like(Generator::grid, Tensor{});
}

void infer_grid_generator_backward(NodeContext& node) {
  using Generator = GridGeneratorBackward;
  auto& op = node.op<Generator>();
  node.require_rank(Generator::dgrid, kMinAxes + 2, kMaxAxes + 2);
  node.require_floating(Generator::dgrid);
  const Tensor& dgrid = node.input(Generator::dgrid);
  const int spatial = dgrid.dims.rank() - 2;
  if (op.size.empty())
    for (int axis = 0; axis < spatial; ++axis) op.size.push_back(dgrid.dims[axis + 1]);
  check_size(node, op, spatial);
  node.require_dims(Generator::dgrid, grid_dims(dgrid.dims[0], op.size));
  node.infer_dims(Generator::dtheta, {dgrid.dims[0], spatial, spatial + 1});
  node.infer_dtype(Generator::dtheta, dgrid.dtype);
  node.infer_strides_like(Generator::dtheta, Tensor{});
}

void infer_grid_sample_forward(NodeContext& node) {
  using Sampler = GridSampleForward;
  node.infer_dims(Sampler::y, check_sampling(node, Sampler::x, Sampler::grid));
  node.infer_dtype(Sampler::y, node.input(Sampler::x).dtype);
  node.infer_strides_like(Sampler::y, node.input(Sampler::x));
}

void infer_grid_sample_backward(NodeContext& node) {
  using Sampler = GridSampleBackward;
  node.require_dims(Sampler::dy, check_sampling(node, Sampler::x, Sampler::grid));
  node.require_floating(Sampler::dy);
  const Tensor& x = node.input(Sampler::x);
  const Tensor& grid = node.input(Sampler::grid);
  node.infer_dims(Sampler::dx, x.dims);
  node.infer_dtype(Sampler::dx, x.dtype);
  node.infer_strides_like(Sampler::dx, x);
  node.infer_dims(Sampler::dgrid, grid.dims);
  node.infer_dtype(Sampler::dgrid, grid.dtype);
  node.infer_strides_like(Sampler::dgrid, grid);
}

// Mostly near x; a grid may point anywhere.
template <class Sampler>
Contents grid_sample_contents(const NodeShapes&, int slot) {
  if (slot != Sampler::grid) return {};
  return {.low = -1.4, .high = 1.4, .below = 1e9, .above = 1e9};
}

// One multiply-add per corner of a cell; three times as many for both gradients.
template <class Sampler>
double grid_sample_flops(const NodeShapes& node) {
  constexpr bool kForward = std::is_same_v<Sampler, GridSampleForward>;
  const double results = count_of(kForward ? node.output(0) : node.input(GridSampleBackward::dy));
  return (kForward ? 1 : 3) * 2 * results * (1 << (node.input(Sampler::x).rank() - 2));
}

std::vector<Value> sample_grid_generator_forward(Graph& g, DType t) {
  using Op = GridGeneratorForward;
  Op op;
  op.size = {4, 4};
  return g.apply(op, {{Op::theta, g.input("theta", {2, 2, 3}, t)}}, {Op::grid}).all();
}
std::vector<Value> sample_grid_generator_backward(Graph& g, DType t) {
  using Op = GridGeneratorBackward;
  Op op;
  op.size = {4, 4};
  return g.apply(op, {{Op::dgrid, g.input("dgrid", {2, 4, 4, 2}, t)}}, {Op::dtheta}).all();
}
std::vector<Value> sample_grid_sample_forward(Graph& g, DType t) {
  using Op = GridSampleForward;
  return g
      .apply(Op{},
             {{Op::x, g.input("x", {1, 4, 6, 6}, t)},
              {Op::grid, g.input("grid", {1, 4, 4, 2}, parameter_dtype(t))}},
             {Op::y})
      .all();
}
std::vector<Value> sample_grid_sample_backward(Graph& g, DType t) {
  using Op = GridSampleBackward;
  return g
      .apply(Op{},
             {{Op::x, g.input("x", {1, 4, 6, 6}, t)},
              {Op::grid, g.input("grid", {1, 4, 4, 2}, parameter_dtype(t))},
              {Op::dy, g.input("dy", {1, 4, 4, 4}, t)}},
             {Op::dx, Op::dgrid})
      .all();
}

void grid_generator_gradient(GradientContext& c) {
  GridGeneratorBackward op;
  static_cast<GridAttributes&>(op) = c.op<GridGeneratorForward>();
  c.add(GridGeneratorForward::theta, c.graph().apply(op, {{GridGeneratorBackward::dgrid, c.dy()}}));
}

void grid_sample_gradient(GradientContext& c) {
  using Backward = GridSampleBackward;
  Backward op;
  static_cast<GridSampleAttributes&>(op) = c.op<GridSampleForward>();
  std::vector<AnyOperand> operands = c.shared_operands(op);
  operands.push_back({Backward::dy, c.dy()});
  const auto out = c.graph().apply_any(op, operands, std::vector<AnyWanted>{{Backward::dgrid}});
  c.add(GridSampleForward::x, out[Backward::dx]);
  c.add(GridSampleForward::grid, out[Backward::dgrid]);
}

}  // namespace

template <>
OpTraits define_traits<GridGeneratorForward>() {
  return {.name = "grid_generator_forward",
          .doc_page = "spatial_transformer",
          .infer = infer_grid_generator_forward,
          .gradient = grid_generator_gradient,
          .sample = sample_grid_generator_forward};
}

template <>
OpTraits define_traits<GridGeneratorBackward>() {
  return {.name = "grid_generator_backward",
          .doc_page = "spatial_transformer",
          .infer = infer_grid_generator_backward,
          .sample = sample_grid_generator_backward};
}

template <>
OpTraits define_traits<GridSampleForward>() {
  return {.name = "grid_sample_forward",
          .doc_page = "spatial_transformer",
          .infer = infer_grid_sample_forward,
          .gradient = grid_sample_gradient,
          .sample = sample_grid_sample_forward,
          .contents = grid_sample_contents<GridSampleForward>,
          .flops = grid_sample_flops<GridSampleForward>};
}

template <>
OpTraits define_traits<GridSampleBackward>() {
  return {.name = "grid_sample_backward",
          .doc_page = "spatial_transformer",
          .infer = infer_grid_sample_backward,
          .sample = sample_grid_sample_backward,
          .contents = grid_sample_contents<GridSampleBackward>,
          .flops = grid_sample_flops<GridSampleBackward>};
}

}  // namespace ashlar
