// Invalid inputs of pooling and interpolation.
#include "graph/bad_input.hpp"

namespace ashlar::tests {

namespace {

void add_resample_forward(BadInputs& rows) {
  const auto resample = [&](const char* name, const Dims& x, const ResampleAttributes& attributes,
                            std::vector<std::string> says,
                            ErrorCode code = ErrorCode::invalid_graph) {
    rows.push_back({name, "resample_forward",
                    [=](Graph& g) { g.resample(in(g, x), attributes, kBad); }, says, code});
  };
  const Dims x = {1, 2, 6, 6};
  const std::int64_t huge = std::int64_t{1} << 62;
  resample("pooling of a matrix", {4, 4}, {.window = {}},
           {"rank of x 'i0'", "got 2", "expected 3 to 5"});
  resample("pooling without window", x, {}, {"window", "got []", "expected 2 values"});
  resample("pooling window too short", x, {.window = {2}},
           {"window", "got [2]", "expected 2 values"});
  resample("pooling window zero", x, {.window = {2, 0}},
           {"window", "got [2, 0]", "expected values of at least 1"});
  resample("pooling stride zero", x, {.window = {2, 2}, .stride = {0, 2}},
           {"stride", "got [0, 2]", "expected values of at least 1"});
  resample("pooling padding length", x, {.window = {2, 2}, .padding = {1}},
           {"padding", "got [1]", "expected 2 values"});
  resample("pooling padding negative", x, {.window = {2, 2}, .padding = {-1, 0}},
           {"padding", "got [-1, 0]", "expected values of at least 0"});
  resample("pooling post_padding length", x, {.window = {2, 2}, .post_padding = Dims{0}},
           {"post_padding", "got [0]", "expected 2 values"});
  resample("pooling padding as large as the window", x, {.window = {2, 2}, .padding = {2, 0}},
           {"padding of spatial axis 0", "got 2", "expected less than the window 2"});
  resample("pooling post_padding as large as the window", x,
           {.window = {3, 2}, .post_padding = Dims{0, 3}},
           {"padding of spatial axis 1", "got 3", "expected less than the window 2"});
  resample("pooling window larger than the input", x, {.window = {9, 2}, .padding = {1, 0}},
           {"window of spatial axis 0", "got 9", "expected at most the padded extent 8"});
  resample("pooling padding overflow", x,
           {.window = {huge + 1, 1}, .padding = {huge, 0}, .post_padding = Dims{huge, 0}},
           {"size overflow", "expected at most"}, ErrorCode::size_overflow);
  resample("bilinear without size", x, {.mode = ResampleMode::bilinear},
           {"size", "got []", "expected 2 output extents for bilinear"});
  resample("nearest size too long", x, {.mode = ResampleMode::nearest, .size = {3, 3, 3}},
           {"size", "got [3, 3, 3]", "expected 2 output extents for nearest"});
  resample("bilinear size negative", x, {.mode = ResampleMode::bilinear, .size = {3, -3}},
           {"size", "got [3, -3]", "expected extents of at least 0"});
  resample("bilinear of nothing", {1, 2, 0, 6}, {.mode = ResampleMode::bilinear, .size = {3, 3}},
           {"spatial axis 0 of x", "got 0", "expected at least 1"});
  rows.push_back({"pooling of booleans",
                  "resample_forward",
                  [=](Graph& g) {
                    g.resample(in(g, x, boolean), {.window = {2, 2}}, kBad);
                  },
                  {"dtype of x 'i0'", "got bool", "expected a numeric type"}});
  rows.push_back({"index of an average",
                  "resample_forward",
                  [=](Graph& g) {
                    g.resample_with_index(in(g, x), {.mode = ResampleMode::avgpool_include_padding,
                                                     .window = {2, 2}});
                  },
                  {"output index", "got a tensor", "expected none: only maxpool has an index"}});
  rows.push_back({"index of floats",
                  "resample_forward",
                  [=](Graph& g) {
                    g.resample_with_index(in(g, x), {.window = {2, 2}}, f32);
                  },
                  {"dtype of index", "got f32", "expected an integer type"}});
  rows.push_back({"index too narrow",
                  "resample_forward",
                  [](Graph& g) {
                    g.resample_with_index(in(g, {1, 1, 20, 20}), {.window = {12, 12}}, i8);
                  },
                  {"dtype of index", "got i8", "expected one that holds 143"}});
}

void add_resample_backward(BadInputs& rows) {
  const Dims dy = {1, 2, 3, 3}, x = {1, 2, 6, 6};
  const ResampleAttributes pool = {.window = {2, 2}};
  const auto backward = [&](const char* name, const Dims& dy_dims, const ResampleAttributes& with,
                            const OutputSpec& spec, const Dims& x_dims, const Dims& index_dims,
                            DType index_dtype, std::vector<std::string> says) {
    rows.push_back({name, "resample_backward",
                    [=](Graph& g) {
                      const Value gradient = in(g, dy_dims);
                      const Value input = x_dims.empty() ? Value() : in(g, x_dims);
                      const Value index =
                          index_dims.empty() ? Value() : in(g, index_dims, index_dtype);
                      g.resample_backward(gradient, with, spec, input, index);
                    },
                    says});
  };
  backward("resample_backward of a matrix", {3, 3}, pool, kBad, x, {}, i32,
           {"rank of dy 'i0'", "got 2", "expected 3 to 5"});
  backward("resample_backward without dims", dy, pool, kBad, {}, dy, i32,
           {"dims of dx", "got none", "expected explicit dims, or an input x"});
  backward("resample_backward rank of dx", dy, pool, bad_with_dims({1, 2, 6}), {}, dy, i32,
           {"rank of dx", "got 3", "expected 4"});
  backward("resample_backward of wrong dy", {1, 2, 4, 3}, pool, kBad, x, {}, i32,
           {"dims of dy 'i0'", "got [1, 2, 4, 3]", "expected [1, 2, 3, 3]"});
  backward("resample_backward of wrong x", dy, pool, bad_with_dims(x), {1, 2, 6, 7}, {}, i32,
           {"dims of x 'i1'", "got [1, 2, 6, 7]", "expected [1, 2, 6, 6]"});
  backward("resample_backward of wrong index", dy, pool, bad_with_dims(x), {}, x, i32,
           {"dims of index 'i1'", "got [1, 2, 6, 6]", "expected [1, 2, 3, 3]"});
  backward("resample_backward of a float index", dy, pool, bad_with_dims(x), {}, dy, f32,
           {"dtype of index 'i1'", "got f32", "expected an integer type"});
  backward("maxpool backward of neither", dy, pool, bad_with_dims(x), {}, {}, i32,
           {"input index", "got nothing", "expected index or x"});
  backward("resample_backward size", dy, {.mode = ResampleMode::bilinear, .size = {4, 4}},
           bad_with_dims(x), {}, {}, i32,
           {"dims of dy 'i0'", "got [1, 2, 3, 3]", "expected [1, 2, 4, 4]"});
}

}  // namespace

void add_bad_resamples(BadInputs& rows) {
  add_resample_forward(rows);
  add_resample_backward(rows);
}

}  // namespace ashlar::tests
