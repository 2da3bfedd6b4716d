// Inference and validation of the spatial transformer.
#include "graph/ops/infer.hpp"

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

}  // namespace

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

}  // namespace ashlar
