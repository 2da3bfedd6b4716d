// Invalid inputs of convolutions.
#include "graph/bad_input.hpp"

namespace ashlar::tests {

namespace {

constexpr std::int64_t kHuge = std::int64_t{1} << 62;

void add_convolution_forward(BadInputs& rows) {
  const auto conv = [&](const char* name, const Dims& x, const Dims& w,
                        const ConvAttributes& attributes, std::vector<std::string> says,
                        ErrorCode code = ErrorCode::invalid_graph) {
    rows.push_back({name, "conv_forward",
                    [=](Graph& g) { g.conv(in(g, x), in(g, w), attributes, kBad); }, says, code});
  };
  const Dims x = {1, 4, 8, 8}, w = {6, 4, 3, 3};
  conv("conv of a matrix", {4, 8}, {4, 8}, {}, {"rank of x 'i", "got 2", "expected 3 to 5"});
  conv("conv of 4 spatial axes", {1, 1, 2, 2, 2, 2}, {1, 1, 1, 1, 1, 1}, {},
       {"rank of x 'i", "got 6", "expected 3 to 5"});
  conv("conv of unequal ranks", x, {6, 4, 3}, {}, {"rank of w 'i", "got 3", "expected 4"});
  conv("conv padding too short", x, w, {.padding = {1}},
       {"padding", "got [1]", "expected 2 values"});
  conv("conv padding negative", x, w, {.padding = {1, -1}},
       {"padding", "got [1, -1]", "expected values of at least 0"});
  conv("conv post_padding too long", x, w, {.post_padding = Dims{1, 1, 1}},
       {"post_padding", "got [1, 1, 1]", "expected 2 values"});
  conv("conv post_padding negative", x, w, {.post_padding = Dims{-2, 0}},
       {"post_padding", "got [-2, 0]", "expected values of at least 0"});
  conv("conv stride zero", x, w, {.stride = {1, 0}},
       {"stride", "got [1, 0]", "expected values of at least 1"});
  conv("conv stride too long", x, w, {.stride = {1, 1, 1}},
       {"stride", "got [1, 1, 1]", "expected 2 values"});
  conv("conv dilation zero", x, w, {.dilation = {0, 1}},
       {"dilation", "got [0, 1]", "expected values of at least 1"});
  conv("conv dilation too short", x, w, {.dilation = {2}},
       {"dilation", "got [2]", "expected 2 values"});
  conv("conv channels", x, {6, 3, 3, 3}, {},
       {"channels", "x with 4 and w with 3", "expected x's channels a positive multiple"});
  conv("conv without channels", {1, 0, 8, 8}, w, {},
       {"channels", "x with 0 and w with 4", "expected x's channels a positive multiple"});
  conv("conv filter without channels", x, {6, 0, 3, 3}, {},
       {"channels", "x with 4 and w with 0", "expected x's channels a positive multiple"});
  conv("conv groups", x, {3, 2, 3, 3}, {},
       {"output channels", "got 3", "expected a multiple of the 2 groups"});
  conv("conv filter too large", x, {6, 4, 9, 3}, {},
       {"filter on spatial axis 0", "got 9", "expected at most the padded input extent 8"});
  conv("conv dilated filter too large", x, w, {.padding = {0, 1}, .dilation = {1, 5}},
       {"filter on spatial axis 1", "got 11", "expected at most the padded input extent 10"});
  conv("conv empty filter", x, {6, 4, 0, 3}, {},
       {"filter extents", "got [6, 4, 0, 3]", "expected at least 1"});
  conv("conv beta without z", x, w, {.beta = 0.5},
       {"beta", "got 0.5", "expected 0, or an input z"});
  conv("conv padding overflow", x, w, {.padding = {kHuge, 0}, .post_padding = Dims{kHuge, 0}},
       {"size overflow", "got 4611686018427387912 + 4611686018427387904", "expected at most"},
       ErrorCode::size_overflow);
  conv("conv dilation overflow", x, w, {.dilation = {kHuge, 1}},
       {"size overflow", "got 2 * 4611686018427387904", "expected at most"},
       ErrorCode::size_overflow);
  rows.push_back({"conv of booleans",
                  "conv_forward",
                  [=](Graph& g) { g.conv(in(g, x, boolean), in(g, w), {}, kBad); },
                  {"dtype of x 'i", "got bool", "expected a numeric type"}});
  rows.push_back({"conv with a boolean filter",
                  "conv_forward",
                  [=](Graph& g) { g.conv(in(g, x), in(g, w, boolean), {}, kBad); },
                  {"dtype of w 'i", "got bool", "expected a numeric type"}});
  rows.push_back({"conv z of other dims",
                  "conv_forward",
                  [=](Graph& g) {
                    g.conv(in(g, x), in(g, w), {.beta = 1.0}, kBad, in(g, {1, 6, 6, 7}));
                  },
                  {"dims of z 'i", "got [1, 6, 6, 7]", "expected [1, 6, 6, 6]"}});
  rows.push_back({"conv boolean z",
                  "conv_forward",
                  [=](Graph& g) {
                    g.conv(in(g, x), in(g, w), {.beta = 1.0}, kBad, in(g, {1, 6, 6, 6}, boolean));
                  },
                  {"dtype of z 'i", "got bool", "expected a numeric type"}});
  rows.push_back({"conv result dims",
                  "conv_forward",
                  [=](Graph& g) {
                    g.conv(in(g, x), in(g, w), {}, bad_with_dims({1, 6, 8, 8}));
                  },
                  {"dims of y 'bad'", "got [1, 6, 8, 8]", "expected [1, 6, 6, 6]"}});
  rows.push_back({"conv without filter",
                  "conv_forward",
                  [=](Graph& g) { g.conv(in(g, x), {}, {}, kBad); },
                  {"input w", "got nothing", "expected a tensor"}});
}

void add_convolution_backward(BadInputs& rows) {
  const Dims dy = {1, 6, 6, 6}, w = {6, 4, 3, 3}, x = {1, 4, 8, 8};
  const auto data = [&](const char* name, const Dims& dy_dims, const Dims& w_dims,
                        const OutputSpec& spec, std::vector<std::string> says) {
    rows.push_back(
        {name, "conv_backward_data",
         [=](Graph& g) { g.conv_backward_data(in(g, dy_dims), in(g, w_dims), {}, spec); }, says});
  };
  data("conv_backward_data without dims", dy, w, kBad,
       {"dims of dx", "got none", "expected explicit dims"});
  data("conv_backward_data of another rank", dy, w, bad_with_dims({1, 4, 8}),
       {"rank of dx", "got 3", "expected 4"});
  data("conv_backward_data of wrong extents", dy, w, bad_with_dims({1, 4, 9, 8}),
       {"dims of dy 'i", "got [1, 6, 6, 6]", "expected [1, 6, 7, 6]"});
  data("conv_backward_data channels", dy, w, bad_with_dims({1, 5, 8, 8}),
       {"channels", "x with 5 and w with 4", "expected x's channels a positive multiple"});
  data("conv_backward_data of unequal ranks", dy, {6, 4, 3}, bad_with_dims(x),
       {"rank of w 'i", "got 3", "expected 4"});
  rows.push_back({"conv_backward_data beta without z",
                  "conv_backward_data",
                  [=](Graph& g) {
                    g.conv_backward_data(in(g, dy), in(g, w), {.beta = 2.0}, bad_with_dims(x));
                  },
                  {"beta", "got 2", "expected 0, or an input z"}});

  const auto filter = [&](const char* name, const Dims& x_dims, const Dims& dy_dims,
                          const OutputSpec& spec, std::vector<std::string> says) {
    rows.push_back(
        {name, "conv_backward_filter",
         [=](Graph& g) { g.conv_backward_filter(in(g, x_dims), in(g, dy_dims), {}, spec); }, says});
  };
  filter("conv_backward_filter without dims", x, dy, kBad,
         {"dims of dw", "got none", "expected explicit dims"});
  filter("conv_backward_filter of another rank", x, dy, bad_with_dims({6, 4, 3, 3, 1}),
         {"rank of dw", "got 5", "expected 4"});
  filter("conv_backward_filter of wrong dy", x, {1, 6, 5, 6}, bad_with_dims(w),
         {"dims of dy 'i", "got [1, 6, 5, 6]", "expected [1, 6, 6, 6]"});
  filter("conv_backward_filter of unequal ranks", x, {1, 6, 6}, bad_with_dims(w),
         {"rank of dy 'i", "got 3", "expected 4"});
  rows.push_back({"conv_backward_filter z of other dims",
                  "conv_backward_filter",
                  [=](Graph& g) {
                    g.conv_backward_filter(in(g, x), in(g, dy), {.beta = 1.0}, bad_with_dims(w),
                                           in(g, dy));
                  },
                  {"dims of z 'i", "got [1, 6, 6, 6]", "expected [6, 4, 3, 3]"}});
}

}  // namespace

void add_bad_convolutions(BadInputs& rows) {
  add_convolution_forward(rows);
  add_convolution_backward(rows);
}

}  // namespace ashlar::tests
