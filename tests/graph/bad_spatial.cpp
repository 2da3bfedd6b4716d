// Invalid inputs of CTC, the spatial transformer, im2col and tensor_transform.
#include "graph/bad_input.hpp"

namespace ashlar::tests {

namespace {

constexpr std::int64_t kHugeExtent = std::int64_t{1} << 62;

struct CtcOperands {
  Dims x = {5, 2, 4}, labels = {2, 3}, label_lengths = {2}, input_lengths = {2}, previous = {};
  DType x_dtype = f32, label_dtype = i32, length_dtype = i32, previous_dtype = f32;
};

void add_ctc(BadInputs& rows) {
  const auto ctc = [&](const char* name, const CtcLoss& op, const CtcOperands& with,
                       std::vector<std::string> says, bool gradient = true) {
    rows.push_back(
        {name, "ctc_loss",
         [=](Graph& g) {
           const Value x = in(g, with.x, with.x_dtype);
           const Value labels = in(g, with.labels, with.label_dtype);
           const Value lengths = in(g, with.label_lengths, with.length_dtype);
           const Value times = in(g, with.input_lengths, i64);
           const Value previous =
               with.previous.empty() ? Value() : in(g, with.previous, with.previous_dtype);
           const std::vector<Operand<CtcLoss>> operands = {{CtcLoss::x, x},
                                                           {CtcLoss::labels, labels},
                                                           {CtcLoss::label_lengths, lengths},
                                                           {CtcLoss::input_lengths, times},
                                                           {CtcLoss::previous, previous}};
           std::vector<Wanted<CtcLoss>> wanted = {CtcLoss::loss};
           if (gradient) wanted.push_back(CtcLoss::gradient);
           g.apply(op, operands, wanted, kBad);
         },
         says});
  };
  ctc("ctc_loss of a matrix", {}, {.x = {5, 4}}, {"rank of x 'i0'", "got 2", "expected 3 to 3"});
  ctc("ctc_loss of integers", {}, {.x_dtype = i32},
      {"dtype of x 'i0'", "got i32", "expected a floating-point type"});
  ctc("ctc_loss without classes", {}, {.x = {5, 2, 0}},
      {"classes of x", "got 0", "expected at least 1"});
  ctc("ctc_loss blank too large", {.blank = 4}, {}, {"blank", "got 4", "expected 0 to 3"});
  ctc("ctc_loss blank negative", {.blank = -1}, {}, {"blank", "got -1", "expected 0 to 3"});
  ctc("ctc_loss labels of rank 3", {}, {.labels = {2, 3, 1}},
      {"rank of labels 'i1'", "got 3", "expected 1 to 2"});
  ctc("ctc_loss float labels", {}, {.label_dtype = f32},
      {"dtype of labels 'i1'", "got f32", "expected an integer type"});
  ctc("ctc_loss labels of another batch", {}, {.labels = {3, 3}},
      {"dims of labels 'i1'", "got [3, 3]", "expected [2, longest]"});
  ctc("ctc_loss float lengths", {}, {.length_dtype = f16},
      {"dtype of label_lengths 'i2'", "got f16", "expected an integer type"});
  ctc("ctc_loss label lengths of another batch", {}, {.label_lengths = {3}},
      {"dims of label_lengths 'i2'", "got [3]", "expected [2]"});
  ctc("ctc_loss input lengths of another batch", {}, {.input_lengths = {2, 1}},
      {"dims of input_lengths 'i3'", "got [2, 1]", "expected [2]"});
  ctc("ctc_loss skip without previous", {.padding = CtcPadding::skip}, {},
      {"input previous", "got nothing", "expected a tensor"});
  ctc("ctc_loss previous for nothing", {}, {.previous = {5, 2, 4}},
      {"input previous", "got a tensor", "expected none"});
  ctc("ctc_loss previous without gradient", {.padding = CtcPadding::skip}, {.previous = {5, 2, 4}},
      {"input previous", "got a tensor", "expected none"}, false);
  ctc("ctc_loss wrong previous", {.padding = CtcPadding::skip}, {.previous = {4, 2, 4}},
      {"dims of previous 'i4'", "got [4, 2, 4]", "expected [5, 2, 4]"});
  ctc("ctc_loss integer previous", {.padding = CtcPadding::skip},
      {.previous = {5, 2, 4}, .previous_dtype = i32},
      {"dtype of previous 'i4'", "got i32", "expected a floating-point type"});
}

void add_generators(BadInputs& rows) {
  const auto forward = [&](const char* name, const Dims& theta, const Dims& size,
                           std::vector<std::string> says, DType dtype = f32,
                           ErrorCode code = ErrorCode::invalid_graph) {
    rows.push_back({name, "grid_generator_forward",
                    [=](Graph& g) {
                      g.apply(GridGeneratorForward{{.size = size}},
                              {{GridGeneratorForward::theta, in(g, theta, dtype)}},
                              {GridGeneratorForward::grid}, kBad);
                    },
                    says, code});
  };
  forward("grid of a matrix", {2, 3}, {4, 4}, {"rank of theta 'i0'", "got 2", "expected 3 to 3"});
  forward("grid of integers", {1, 2, 3}, {4, 4}, {"dtype of theta 'i0'", "got i32"}, i32);
  forward("grid of square theta", {1, 3, 3}, {4, 4},
          {"dims of theta 'i0'", "got [1, 3, 3]", "expected [N, 2, 3] or [N, 3, 4]"});
  forward("grid of four axes", {1, 4, 5}, {2, 2, 2, 2},
          {"dims of theta 'i0'", "got [1, 4, 5]", "expected [N, 2, 3] or [N, 3, 4]"});
  forward("grid without size", {1, 2, 3}, {}, {"size", "got []", "expected 2 extents"});
  forward("grid of negative size", {1, 2, 3}, {4, -1},
          {"size", "got [4, -1]", "expected extents of at least 0"});
  forward("grid past the range", {1, 2, 3}, {kHugeExtent, 4}, {"size overflow"}, f32,
          ErrorCode::size_overflow);
  const auto backward = [&](const char* name, const Dims& dgrid, const Dims& size,
                            std::vector<std::string> says, DType dtype = f32) {
    rows.push_back({name, "grid_generator_backward",
                    [=](Graph& g) {
                      g.apply(GridGeneratorBackward{{.size = size}},
                              {{GridGeneratorBackward::dgrid, in(g, dgrid, dtype)}},
                              {GridGeneratorBackward::dtheta}, kBad);
                    },
                    says});
  };
  backward("grid backward of rank 3", {2, 3, 2}, {},
           {"rank of dgrid 'i0'", "got 3", "expected 4 to 5"});
  backward("grid backward of integers", {1, 2, 3, 2}, {}, {"dtype of dgrid 'i0'", "got i8"}, i8);
  backward("grid backward of three coordinates", {1, 2, 3, 3}, {},
           {"dims of dgrid 'i0'", "got [1, 2, 3, 3]", "expected [1, 2, 3, 2]"});
  backward("grid backward of another size", {1, 2, 3, 2}, {3, 3},
           {"dims of dgrid 'i0'", "got [1, 2, 3, 2]", "expected [1, 3, 3, 2]"});
  backward("grid backward size length", {1, 2, 3, 2}, {3}, {"size", "got [3]", "expected 2"});
}

void add_samplers(BadInputs& rows) {
  struct Shapes {
    Dims x = {2, 3, 4, 5}, grid = {2, 3, 3, 2}, dy = {2, 3, 3, 3};
    DType x_dtype = f32, grid_dtype = f32, dy_dtype = f32;
  };
  const auto both = [&](const std::string& what, const Shapes& s, std::vector<std::string> says) {
    rows.push_back({"grid_sample_forward " + what, "grid_sample_forward",
                    [=](Graph& g) {
                      const Value x = in(g, s.x, s.x_dtype), grid = in(g, s.grid, s.grid_dtype);
                      g.apply(GridSampleForward{},
                              {{GridSampleForward::x, x}, {GridSampleForward::grid, grid}},
                              {GridSampleForward::y}, kBad);
                    },
                    says});
    rows.push_back({"grid_sample_backward " + what, "grid_sample_backward",
                    [=](Graph& g) {
                      const Value x = in(g, s.x, s.x_dtype), grid = in(g, s.grid, s.grid_dtype);
                      const Value dy = in(g, s.dy, s.dy_dtype);
                      g.apply(GridSampleBackward{},
                              {{GridSampleBackward::x, x},
                               {GridSampleBackward::grid, grid},
                               {GridSampleBackward::dy, dy}},
                              {GridSampleBackward::dx}, kBad);
                    },
                    says});
  };
  both("of one axis", {.x = {2, 3, 4}}, {"rank of x 'i0'", "got 3", "expected 4 to 5"});
  both("of integers", {.x_dtype = i32}, {"dtype of x 'i0'", "got i32", "expected a floating"});
  both("at integers", {.grid_dtype = i32}, {"dtype of grid 'i1'", "got i32"});
  both("with another rank", {.grid = {2, 2, 3, 3, 3}}, {"rank of grid 'i1'", "got 5", "that of x"});
  both("of another batch", {.grid = {1, 3, 3, 2}}, {"batch of grid", "got 1", "expected 2"});
  both("with three coordinates", {.grid = {2, 3, 3, 3}},
       {"last extent of grid", "got 3", "expected 2, one coordinate"});
  both("from nothing", {.x = {2, 3, 0, 5}},
       {"spatial axis 0 of x", "got 0", "expected at least 1 element"});
  const auto backward = [&](const char* name, const Shapes& s, std::vector<std::string> says) {
    rows.push_back({name, "grid_sample_backward",
                    [=](Graph& g) {
                      const Value x = in(g, s.x), grid = in(g, s.grid);
                      const Value dy = in(g, s.dy, s.dy_dtype);
                      g.apply(GridSampleBackward{},
                              {{GridSampleBackward::x, x},
                               {GridSampleBackward::grid, grid},
                               {GridSampleBackward::dy, dy}},
                              {GridSampleBackward::dx, GridSampleBackward::dgrid}, kBad);
                    },
                    says});
  };
  backward("grid_sample_backward of wrong dy", {.dy = {2, 3, 3, 4}},
           {"dims of dy 'i2'", "got [2, 3, 3, 4]", "expected [2, 3, 3, 3]"});
  backward("grid_sample_backward of integer dy", {.dy_dtype = i8},
           {"dtype of dy 'i2'", "got i8", "expected a floating-point type"});
}

void add_im2col(BadInputs& rows) {
  const auto bad = [&](const char* name, const Dims& x, const Im2Col& op,
                       std::vector<std::string> says, DType dtype = f32,
                       ErrorCode code = ErrorCode::invalid_graph) {
    rows.push_back({name, "im2col",
                    [=](Graph& g) {
                      g.apply(op, {{Im2Col::x, in(g, x, dtype)}}, {Im2Col::y}, kBad);
                    },
                    says, code});
  };
  const Dims x = {1, 2, 6, 6};
  bad("im2col of a matrix", {4, 4}, {}, {"rank of x 'i0'", "got 2", "expected 3 to 5"});
  bad("im2col of complex numbers", x, {.window = {2, 2}},
      {"dtype of x 'i0'", "got complex_f32", "expected a real type"}, complex_f32);
  bad("im2col without window", x, {}, {"window", "got []", "expected 2 values"});
  bad("im2col window zero", x, {.window = {2, 0}}, {"window", "got [2, 0]", "at least 1"});
  bad("im2col padding length", x, {.window = {2, 2}, .padding = {1}},
      {"padding", "got [1]", "expected 2 values"});
  bad("im2col padding negative", x, {.window = {2, 2}, .padding = {1, -1}},
      {"padding", "got [1, -1]", "at least 0"});
  bad("im2col post_padding length", x, {.window = {2, 2}, .post_padding = Dims{1}},
      {"post_padding", "got [1]", "expected 2 values"});
  bad("im2col stride zero", x, {.window = {2, 2}, .stride = {1, 0}},
      {"stride", "got [1, 0]", "at least 1"});
  bad("im2col dilation zero", x, {.window = {2, 2}, .dilation = {0, 1}},
      {"dilation", "got [0, 1]", "at least 1"});
  bad("im2col window too large", x, {.window = {2, 4}, .dilation = {1, 3}},
      {"window of spatial axis 1", "got 10", "expected at most the padded extent 6"});
  bad("im2col past the range", x, {.window = {2, 2}, .padding = {kHugeExtent, 0}},
      {"size overflow"}, f32, ErrorCode::size_overflow);
}

void add_transforms(BadInputs& rows) {
  const auto bad = [&](const char* name, const TensorTransform& op, std::vector<std::string> says,
                       const Dims& x = {2, 4, 6, 6}, DType dtype = f32, const Dims& z = {},
                       DType z_dtype = f32, ErrorCode code = ErrorCode::invalid_graph) {
    rows.push_back({name, "tensor_transform",
                    [=](Graph& g) {
                      const Value operand = in(g, x, dtype);
                      const Value addend = z.empty() ? Value() : in(g, z, z_dtype);
                      g.apply(op, {{TensorTransform::x, operand}, {TensorTransform::z, addend}},
                              {TensorTransform::y}, kBad);
                    },
                    says, code});
  };
  bad("transform of booleans", {}, {"dtype of x 'i0'", "got bool", "expected a numeric type"},
      {2, 2}, boolean);
  bad("transform of complex numbers", {}, {"dtype of x 'i0'", "got complex_f64", "a real type"},
      {2, 2}, complex_f64);
  bad("transform pad_before length", {.pad_before = {1}},
      {"pad_before", "got [1]", "expected 4 values, one per axis"});
  bad("transform pad_after negative", {.pad_after = {0, 0, -1, 0}},
      {"pad_after", "got [0, 0, -1, 0]", "at least 0"});
  bad("transform fold length", {.fold = {2}}, {"fold", "got [2]", "expected 2 values"});
  bad("transform fold zero", {.fold = {2, 0}}, {"fold", "got [2, 0]", "at least 1"});
  bad("transform fold of a matrix", {.fold = {2}}, {"fold", "got [2]", "expected 0 values"},
      {4, 4});
  bad("transform fold does not divide", {.pad_before = {0, 0, 1, 0}, .fold = {2, 2}},
      {"padded extent of spatial axis 0", "got 7", "expected a multiple of its fold 2"});
  bad("transform channels do not unfold", {.fold = {3, 1}, .unfold = true},
      {"channels of x", "got 4", "expected a multiple of 3"});
  bad("transform crops too much",
      {.pad_before = {0, 0, 0, 4}, .pad_after = {0, 0, 0, 3}, .unfold = true},
      {"padding of axis 3", "got 7", "expected at most 6"});
  bad("transform beta without z", {.beta = 1.0}, {"beta", "got 1", "expected 0, or an input z"});
  bad("transform wrong z", {.beta = 1.0}, {"dims of z 'i1'", "got [2, 4, 6, 5]", "[2, 4, 6, 6]"},
      {2, 4, 6, 6}, f32, {2, 4, 6, 5});
  bad("transform boolean z", {.beta = 1.0}, {"dtype of z 'i1'", "got bool"}, {2, 4}, f32, {2, 4},
      boolean);
  bad("transform past the range", {.pad_before = {kHugeExtent, 0}, .pad_after = {kHugeExtent, 0}},
      {"size overflow"}, {2, 4}, f32, {}, f32, ErrorCode::size_overflow);
}

}  // namespace

void add_bad_spatial(BadInputs& rows) {
  add_ctc(rows);
  add_generators(rows);
  add_samplers(rows);
  add_im2col(rows);
  add_transforms(rows);
}

}  // namespace ashlar::tests
