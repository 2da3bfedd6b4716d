// Sample graphs with options: CTC, the spatial transformer, im2col and tensor_transform.
#include "graph/sample_graphs.hpp"

namespace ashlar::tests {

namespace {

void add_ctc(Samples& samples) {
  for (bool skip : {false, true})
    sample(samples, "ctc_loss", [=](Graph& g) {
      const Dims x = {5, 2, 4};
      CtcLoss op{.blank = 3, .zero_infinity = !skip};
      if (skip) op.padding = CtcPadding::skip;
      return g.apply(op,
                     {{CtcLoss::x, g.input("x", x, f32)},
                      {CtcLoss::labels, g.input("labels", skip ? Dims{4} : Dims{2, 3}, i32)},
                      {CtcLoss::label_lengths, g.input("label_lengths", {2}, i32)},
                      {CtcLoss::input_lengths, g.input("input_lengths", {2}, i32)},
                      {CtcLoss::previous, skip ? g.input("previous", x, f32) : Value()}},
                     {CtcLoss::loss, CtcLoss::gradient});
    });
}

void add_transformer(Samples& samples) {
  sample(samples, "grid_generator_forward", [](Graph& g) {
    return g.apply(GridGeneratorForward{{.size = {3, 4}, .align_corners = false}},
                   {{GridGeneratorForward::theta, g.input("theta", {2, 2, 3}, f32)}},
                   {GridGeneratorForward::grid});
  });
  sample(samples, "grid_generator_backward", [](Graph& g) {
    return g.apply(GridGeneratorBackward{},
                   {{GridGeneratorBackward::dgrid, g.input("dgrid", {2, 2, 3, 4, 3}, f32)}},
                   {GridGeneratorBackward::dtheta});
  });
  sample(samples, "grid_sample_forward", [](Graph& g) {
    const GridSampleAttributes attributes{.mode = GridSampleMode::nearest,
                                          .padding = GridPadding::reflection};
    return g.apply(GridSampleForward{attributes},
                   {{GridSampleForward::x, g.input("x", {2, 3, 4, 5}, f32, channels_last)},
                    {GridSampleForward::grid, g.input("grid", {2, 3, 3, 2}, f32)}},
                   {GridSampleForward::y});
  });
  sample(samples, "grid_sample_backward", [](Graph& g) {
    return g.apply(GridSampleBackward{{.align_corners = false}},
                   {{GridSampleBackward::x, g.input("x", {2, 3, 4, 5}, f32)},
                    {GridSampleBackward::grid, g.input("grid", {2, 3, 2, 2}, f32)},
                    {GridSampleBackward::dy, g.input("dy", {2, 3, 3, 2}, f32)}},
                   {GridSampleBackward::dx, GridSampleBackward::dgrid});
  });
}

}  // namespace

void add_spatial_samples(Samples& samples) {
  add_ctc(samples);
  add_transformer(samples);
  sample(samples, "im2col", [](Graph& g) {
    return g.apply(
        Im2Col{.window = {3, 2}, .padding = {1, 1}, .post_padding = Dims{0, 1}, .stride = {2, 1}},
        {{Im2Col::x, g.input("x", {2, 3, 5, 4}, f32)}}, {Im2Col::y});
  });
  sample(samples, "tensor_transform", [](Graph& g) {
    const TensorTransform op{.pad_before = {0, 0, 1, 0},
                             .pad_after = {0, 0, 0, 1},
                             .fold = {2, 2},
                             .alpha = 0.5,
                             .beta = 2.0};
    return g.apply(op,
                   {{TensorTransform::x, g.input("x", {2, 3, 3, 5}, f32)},
                    {TensorTransform::z, g.input("z", {2, 12, 2, 3}, f32)}},
                   {TensorTransform::y});
  });
}

}  // namespace ashlar::tests
