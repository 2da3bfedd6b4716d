// Invalid inputs of MoE, caches, band matrices, causal convolution and dropout.
#include <cmath>

#include "graph/bad_input.hpp"

namespace ashlar::tests {

namespace {

// A valid mixture of experts; each row changes one property.
struct Mixture {
  Dims token = {1, 6, 4}, weight = {2, 4, 3}, first = {2, 1, 1}, index = {}, ks = {};
  Dims doutput = {1, 6, 3}, output = {};
  DType dtype = f32, integer = i32;
  MoeMode mode = MoeMode::none;
  std::int64_t top_k = 1;
  bool dtoken = true;
};

Value optional(Graph& g, const Dims& dims, DType dtype) {
  return dims.empty() ? Value() : in(g, dims, dtype);
}

void add_mixtures(BadInputs& rows) {
  const auto forward = [&](const char* name, const Mixture& m, std::vector<std::string> says) {
    rows.push_back({name, "moe_grouped_matmul",
                    [=](Graph& g) {
                      using Moe = MoeGroupedMatmul;
                      Moe op;
                      op.mode = m.mode;
                      op.top_k = m.top_k;
                      g.apply(op,
                              {{Moe::token, in(g, m.token, m.dtype)},
                               {Moe::weight, in(g, m.weight, f32)},
                               {Moe::first_token_offset, in(g, m.first, m.integer)},
                               {Moe::token_index, optional(g, m.index, i32)},
                               {Moe::token_ks, optional(g, m.ks, i32)}},
                              {Moe::output}, bad_with_dims(m.output));
                    },
                    says});
  };
  forward("moe token rank", {.token = {6, 4}}, {"rank of token", "got 2", "expected 3 to 3"});
  forward("moe two batches of tokens", {.token = {2, 6, 4}},
          {"batch of token", "got 2", "expected 1"});
  forward("moe of booleans", {.dtype = boolean},
          {"dtype of token", "got bool", "expected a numeric type"});
  forward("moe of complex numbers", {.dtype = complex_f32},
          {"dtype of token", "got complex_f32", "expected a real type"});
  forward("moe depth", {.weight = {2, 5, 3}},
          {"k", "got 4 columns in token and 5 rows in weight", "expected equal counts"});
  forward("moe offsets of floats", {.integer = f32},
          {"dtype of first_token_offset", "got f32", "expected an integer type"});
  forward("moe offsets for half an expert", {.first = {3, 1, 1}},
          {"dims of first_token_offset", "got 3", "a multiple of 2, the number of experts"});
  forward("moe offsets with two columns", {.first = {2, 2, 1}},
          {"dims of first_token_offset", "got [2, 2, 1]", "expected [2, 1, 1]"});
  forward("moe top_k", {.top_k = 0}, {"top_k", "got 0", "expected at least 1"});
  forward("moe gather without index", {.mode = MoeMode::gather},
          {"token_index", "got nothing", "expected a tensor [1, rows, 1] in mode gather"});
  forward("moe index without gather", {.index = {1, 6, 1}},
          {"token_index", "got a tensor", "expected nothing in mode none"});
  forward("moe scatter without rank", {.index = {1, 6, 1}, .mode = MoeMode::scatter},
          {"token_ks", "got nothing", "in mode scatter"});
  forward("moe scatter of other rows",
          {.index = {1, 5, 1}, .ks = {1, 6, 1}, .mode = MoeMode::scatter},
          {"dims of token_index", "got [1, 5, 1]", "expected [1, 6, 1]"});
  forward("moe output", {.output = {1, 5, 3}},
          {"dims of output", "got [1, 5, 3]", "expected [1, 6, 3]"});

  const auto backward = [&](const char* name, const Mixture& m, std::vector<std::string> says) {
    rows.push_back({name, "moe_grouped_matmul_backward",
                    [=](Graph& g) {
                      using Moe = MoeGroupedMatmulBackward;
                      Moe op;
                      op.mode = m.mode;
                      std::vector<Wanted<Moe>> wanted = {Moe::dweight};
                      if (m.dtoken) wanted.emplace_back(Moe::dtoken);
                      const std::vector<Operand<Moe>> operands = {
                          {Moe::doutput, in(g, m.doutput, m.dtype)},
                          {Moe::token, in(g, m.token, f32)},
                          {Moe::first_token_offset, in(g, m.first, m.integer)},
                          {Moe::weight, optional(g, m.weight, f32)},
                          {Moe::token_index, optional(g, m.index, i32)}};
                      g.apply(op, operands, wanted, bad_with_dims(m.output));
                    },
                    says});
  };
  backward("moe gradient of integers", {.dtype = i8},
           {"dtype of doutput", "got i8", "expected a floating-point type"});
  backward("moe gradient rows", {.doutput = {1, 5, 3}},
           {"dims of doutput", "got [1, 5, 3]", "expected [1, 6, 3]"});
  backward("moe gradient columns", {.doutput = {1, 6, 7}},
           {"dims of weight", "got [2, 4, 3]", "expected [2, 4, 7]"});
  backward("moe dtoken without weight", {.weight = {}},
           {"weight", "got nothing", "expected a tensor: dtoken is computed from it"});
  backward("moe gradient with index", {.index = {1, 6, 1}},
           {"token_index", "got a tensor", "expected nothing in mode none"});
  backward("moe dweight", {.output = {2, 4, 4}},
           {"dims of dweight", "got [2, 4, 4]", "expected [2, 4, 3]"});
}

void add_caches(BadInputs& rows) {
  const auto load = [&](const char* name, const Dims& container, const Dims& table,
                        const Dims& lengths, const Dims& y, std::vector<std::string> says,
                        DType integer = i32, DType dtype = f32) {
    rows.push_back({name, "paged_cache_load",
                    [=](Graph& g) {
                      using Load = PagedCacheLoad;
                      g.apply(Load{},
                              {{Load::container, in(g, container, dtype)},
                               {Load::page_table, in(g, table, integer)},
                               {Load::sequence, optional(g, lengths, i32)}},
                              {Load::y}, bad_with_dims(y));
                    },
                    says});
  };
  const Dims container = {5, 2, 4, 3}, table = {2, 1, 3, 1};
  load("cache container rank", {5, 2, 4}, table, {}, {},
       {"rank of container", "got 3", "expected 4 to 4"});
  load("cache of complex numbers", container, table, {}, {},
       {"dtype of container", "got complex_f64", "expected a real type"}, i32, complex_f64);
  load("cache table per head", container, {2, 2, 3, 1}, {}, {},
       {"dims of page_table", "got [2, 2, 3, 1]", "expected [2, 1, 3, 1]"});
  load("cache table of floats", container, table, {}, {},
       {"dtype of page_table", "got f32", "expected an integer type"}, f32);
  load("cache lengths", container, table, {3, 1, 1, 1}, {},
       {"dims of sequence", "got [3, 1, 1, 1]", "expected [2, 1, 1, 1]"});
  load("cache past the table", container, table, {}, {2, 2, 13, 3},
       {"extent 2 of y", "got 13", "expected at most 12: 3 pages of 4"});
  load("cache result", container, table, {}, {2, 3, 9, 3},
       {"dims of y", "got [2, 3, 9, 3]", "expected [2, 2, 9, 3]"});

  struct Band {
    Dims x = {2, 3, 4};
    std::int64_t lower = 1, upper = 2, axis = -1;
    Dims shift = {}, y = {};
    DType dtype = f32, integer = i32;
  };
  const auto band = [&](const std::string& name, const char* op_name, const Band& b,
                        std::vector<std::string> says, ErrorCode code = ErrorCode::invalid_graph) {
    const bool expands = std::string(op_name) == "expand_band_matrix";
    rows.push_back({name + ", " + op_name, op_name,
                    [=](Graph& g) {
                      const auto add = [&](auto op) {
                        using Op = decltype(op);
                        op.lower_bandwidth = b.lower;
                        op.upper_bandwidth = b.upper;
                        op.axis = b.axis;
                        g.apply(op,
                                {{Op::x, in(g, b.x, b.dtype)},
                                 {Op::kv_token_offset, optional(g, b.shift, b.integer)}},
                                {Op::y}, bad_with_dims(b.y));
                      };
                      if (expands)
                        add(ExpandBandMatrix{});
                      else
                        add(ContractBandMatrix{});
                    },
                    says, code});
  };
  for (const char* op : {"expand_band_matrix", "contract_band_matrix"}) {
    band("band of a vector", op, {.x = {4}}, {"rank of x", "got 1", "expected 2 to 8"});
    band("band axis", op, {.axis = 3}, {"axis", "got 3", "expected -3 to 2"});
    band("band without rows", op, {.axis = 0}, {"axis", "got 0", "expected at least 1"});
    band("band below", op, {.lower = -1, .upper = 4},
         {"lower_bandwidth", "got -1", "expected at least 0"});
    band("band above", op, {.lower = 4, .upper = -1},
         {"upper_bandwidth", "got -1", "expected at least 0"});
    band("band of complex numbers", op, {.dtype = complex_f32},
         {"dtype of x", "got complex_f32", "expected a real type"});
    band("band shift per row", op, {.shift = {2, 3, 1}},
         {"dims of kv_token_offset", "got [2, 3, 1]", "expected extents equal to [2, 1, 1]"});
    band("band shift of floats", op, {.shift = {2, 1, 1}, .integer = f16},
         {"dtype of kv_token_offset", "got f16", "expected an integer type"});
  }
  band("expanded width", "expand_band_matrix", {.lower = 2, .upper = 2},
       {"extent 2 of x", "got 4", "expected lower_bandwidth + upper_bandwidth + 1 with 2 and 2"});
  band("expanded rows", "expand_band_matrix", {.y = {2, 4, 9}},
       {"dims of y", "got [2, 4, 9]", "expected [2, 3, 9]"});
  band("contracted width", "contract_band_matrix", {.y = {2, 3, 5}},
       {"dims of y", "got [2, 3, 5]", "expected [2, 3, 4]"});
  band("contracted overflow", "contract_band_matrix",
       {.lower = std::int64_t{1} << 62, .upper = std::int64_t{1} << 62}, {"size overflow"},
       ErrorCode::size_overflow);
}

void add_causal_convolutions(BadInputs& rows) {
  struct Conv {
    Dims x = {2, 3, 5}, w = {3, 4}, bias = {}, state = {}, dy = {2, 3, 5}, y = {};
    DType dtype = f32;
    bool dstate = false;
  };
  const auto forward = [&](const std::string& name, const Conv& c, std::vector<std::string> says) {
    rows.push_back({name, "causal_conv_forward",
                    [=](Graph& g) {
                      using Op = CausalConvForward;
                      g.apply(Op{},
                              {{Op::x, in(g, c.x, c.dtype)},
                               {Op::w, in(g, c.w)},
                               {Op::bias, optional(g, c.bias, f32)},
                               {Op::initial_state, optional(g, c.state, f32)}},
                              {Op::y}, bad_with_dims(c.y));
                    },
                    says});
  };
  const auto backward = [&](const std::string& name, const Conv& c, std::vector<std::string> says) {
    rows.push_back({name, "causal_conv_backward",
                    [=](Graph& g) {
                      using Op = CausalConvBackward;
                      std::vector<Wanted<Op>> wanted = {Op::dx};
                      if (c.dstate) wanted.emplace_back(Op::dinitial_state);
                      const std::vector<Operand<Op>> operands = {
                          {Op::x, in(g, c.x, c.dtype)},
                          {Op::w, in(g, c.w)},
                          {Op::dy, in(g, c.dy, c.dtype)},
                          {Op::bias, optional(g, c.bias, f32)},
                          {Op::initial_state, optional(g, c.state, f32)}};
                      g.apply(Op{}, operands, wanted, bad_with_dims(c.y));
                    },
                    says});
  };
  const auto both = [&](const std::string& name, const Conv& c,
                        const std::vector<std::string>& says) {
    forward(name, c, says);
    backward(name + ", gradient", c, says);
  };
  both("causal conv rank", {.x = {2, 3, 5, 1}}, {"rank of x", "got 4", "expected 3 to 3"});
  both("causal conv filter rank", {.w = {3, 1, 4}}, {"rank of w", "got 3", "expected 2 to 2"});
  both("causal conv of integers", {.dtype = i8},
       {"dtype of x", "got i8", "expected a floating-point type"});
  both("causal conv channels", {.w = {4, 4}}, {"channels of w", "got 4", "expected 3"});
  both("causal conv without taps", {.w = {3, 0}}, {"extent 1 of w", "got 0", "at least 1"});
  both("causal conv bias", {.bias = {1}}, {"dims of bias", "got [1]", "expected [3]"});
  both("causal conv state", {.state = {2, 3, 4}},
       {"dims of initial_state", "got [2, 3, 4]", "expected [2, 3, 3]"});
  forward("causal conv result", {.y = {2, 3, 2}},
          {"dims of y", "got [2, 3, 2]", "expected [2, 3, 5]"});
  backward("causal conv gradient", {.dy = {2, 3, 6}},
           {"dims of dy", "got [2, 3, 6]", "expected [2, 3, 5]"});
  backward("causal conv gradient of no state", {.dstate = true},
           {"initial_state", "got nothing", "dinitial_state is its gradient"});
}

void add_dropouts(BadInputs& rows) {
  const auto forward = [&](const char* name, DType dtype, double probability, const Dims& seed,
                           DType integer, std::vector<std::string> says, DType next = i64,
                           const Dims& next_dims = {}) {
    rows.push_back(
        {name, "dropout_forward",
         [=](Graph& g) {
           using Op = DropoutForward;
           Op op;
           op.probability = probability;
           g.apply(op,
                   {{Op::x, in(g, {3, 5}, dtype)}, {Op::seed_tensor, optional(g, seed, integer)}},
                   {Op::y, {Op::next_offset, next, next_dims}}, kBad);
         },
         says});
  };
  forward("dropout of integers", i32, 0.5, {}, i64,
          {"dtype of x", "got i32", "expected a floating-point type"});
  forward("dropout probability", f32, 1.5, {}, i64,
          {"probability", "got 1.5", "expected a value in [0, 1]"});
  forward("dropout probability NaN", f32, std::nan(""), {}, i64,
          {"probability", "got nan", "expected a value in [0, 1]"});
  forward("dropout seeds", f32, 0.5, {2}, i64,
          {"dims of seed_tensor", "got [2]", "expected a single element"});
  forward("dropout seed of floats", f32, 0.5, {1}, f32,
          {"dtype of seed_tensor", "got f32", "expected an integer type"});
  forward("dropout state in 32 bits", f32, 0.5, {}, i64,
          {"dtype of next_offset", "got i32", "expected i64"}, i32);
  forward("dropout states", f32, 0.5, {}, i64,
          {"dims of next_offset", "got [1, 2]", "expected [1, 1]"}, i64, {1, 2});

  const auto backward = [&](const char* name, DType dtype, double probability, const Dims& mask,
                            const Dims& offset, std::vector<std::string> says) {
    rows.push_back({name, "dropout_backward",
                    [=](Graph& g) {
                      using Op = DropoutBackward;
                      Op op;
                      op.probability = probability;
                      g.apply(op,
                              {{Op::dy, in(g, {3, 5}, dtype)},
                               {Op::mask, optional(g, mask, boolean)},
                               {Op::offset_tensor, optional(g, offset, i64)}},
                              {Op::dx}, kBad);
                    },
                    says});
  };
  backward("dropout gradient of integers", i8, 0.5, {}, {},
           {"dtype of dy", "got i8", "expected a floating-point type"});
  backward("dropout gradient probability", f32, -0.5, {}, {},
           {"probability", "got -0.5", "expected a value in [0, 1]"});
  backward("dropout gradient mask", f32, 0.5, {1, 5}, {},
           {"dims of mask", "got [1, 5]", "expected [3, 5]"});
  backward("dropout gradient offsets", f32, 0.5, {}, {2, 1},
           {"dims of offset_tensor", "got [2, 1]", "expected a single element"});
}

}  // namespace

void add_bad_sequence(BadInputs& rows) {
  add_mixtures(rows);
  add_caches(rows);
  add_causal_convolutions(rows);
  add_dropouts(rows);
}

}  // namespace ashlar::tests
