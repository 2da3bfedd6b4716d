// Mixture of experts, caches, band matrices, causal convolution and dropout in random graphs.
#include "random/graph_maker.hpp"

namespace ashlar::random_graphs {

namespace {

// The attributes of a mixture's forward and backward.
template <class Op>
Op mixture_of(const MoeAttributes& attributes) {
  Op op;
  static_cast<MoeAttributes&>(op) = attributes;
  return op;
}

}  // namespace

void GraphMaker::add_sequence() {
  // Indices and lengths are separate inputs: computed values could be out of range.
  const auto integers = [&](const Dims& extents) {
    return graph_.input(name("n"), extents, chance(0.5) ? i32 : i64);
  };
  switch (below(9)) {
    case 0:
    case 1: {
      MoeAttributes attributes;
      attributes.mode = static_cast<MoeMode>(below(3));
      attributes.top_k = 1 + below(3);
      const std::int64_t tokens = 1 + below(9), depth = 1 + below(8), columns = 1 + below(8);
      const std::int64_t experts = 1 + below(4), groups = experts * (1 + below(2));
      const std::int64_t rows = attributes.mode == MoeMode::gather ? 1 + below(12) : tokens;
      const std::int64_t output_rows =
          attributes.mode == MoeMode::scatter && chance(0.5) ? 1 + below(12) : rows;
      const Value first = integers({groups, 1, 1});
      const Value index = attributes.mode == MoeMode::none ? Value() : integers({1, rows, 1});
      const Value ks = attributes.mode == MoeMode::scatter ? integers({1, rows, 1}) : Value();
      if (chance(0.5)) {
        using Op = MoeGroupedMatmul;
        const DType dtype = arithmetic();
        OutputSpec wanted = spec();
        wanted.dims = {1, output_rows, columns};
        return keep(graph_.apply(mixture_of<Op>(attributes),
                                 {{Op::token, like({1, tokens, depth}, dtype)},
                                  {Op::weight, like({experts, depth, columns}, dtype)},
                                  {Op::first_token_offset, first},
                                  {Op::token_index, index},
                                  {Op::token_ks, ks}},
                                 {Op::output}, wanted)[Op::output]);
      }
      using Op = MoeGroupedMatmulBackward;
      const DType dtype = floating();
      const auto gradients = graph_.apply(mixture_of<Op>(attributes),
                                          {{Op::doutput, like({1, output_rows, columns}, dtype)},
                                           {Op::token, like({1, tokens, depth}, dtype)},
                                           {Op::weight, like({experts, depth, columns}, dtype)},
                                           {Op::first_token_offset, first},
                                           {Op::token_index, index},
                                           {Op::token_ks, ks}},
                                          {Op::dweight, Op::dtoken});
      keep(gradients[Op::dweight]);
      return keep(gradients[Op::dtoken]);
    }
    case 2: {
      using Op = PagedCacheLoad;
      const Dims container = {1 + below(4), 1 + below(3), 1 + below(5), 1 + below(8)};
      const std::int64_t batch = 1 + below(3), pages = 1 + below(4);
      return keep(graph_.apply(Op{.transposed = chance(0.5)},
                               {{Op::container, like(container, arithmetic())},
                                {Op::page_table, integers({batch, 1, pages, 1})},
                                {Op::sequence, chance(0.5) ? integers({batch, 1, 1, 1}) : Value()}},
                               {Op::y}, spec()));
    }
    case 3:
    case 4: {
      const Value x = arithmetic_value(2, 4);
      const int rank = x.dims().rank(), axis = 1 + static_cast<int>(below(rank - 1));
      const std::int64_t width = x.dims()[axis];
      if (width == 0 || x.dims()[axis - 1] * element_count(x.dims()) > 20000) return;
      Dims shift = Dims::filled(rank, 1);
      if (axis > 1) shift[0] = x.dims()[0];
      const auto band = [&](auto op, std::int64_t lower, std::int64_t upper) {
        using Op = decltype(op);
        op.lower_bandwidth = lower;
        op.upper_bandwidth = upper;
        op.axis = chance(0.5) ? axis : axis - rank;
        op.pad_value = chance(0.5) ? 0.0 : -1.0;
        keep(graph_.apply(
            op, {{Op::x, x}, {Op::kv_token_offset, chance(0.4) ? integers(shift) : Value()}},
            {Op::y}, spec()));
      };
      const std::int64_t lower = below(width);
      if (chance(0.5)) return band(ExpandBandMatrix{}, lower, width - 1 - lower);
      return band(ContractBandMatrix{}, below(3), below(3));
    }
    case 5:
    case 6: {
      const Dims x = {1 + below(3), 1 + below(6), 1 + below(20)};
      const std::int64_t taps = 1 + below(5);
      const Dims w = {x[1], taps}, state = {x[0], x[1], taps - 1};
      const DType dtype = floating();
      const bool silu = chance(0.5), forward = chance(0.5);
      const Value bias = chance(0.5) ? like({x[1]}, dtype) : Value();
      const Value initial = chance(0.5) ? like(state, dtype) : Value();
      const auto activation = silu ? CausalConvActivation::silu : CausalConvActivation::identity;
      if (forward) {
        using Op = CausalConvForward;
        Op op;
        op.activation = activation;
        const auto results = graph_.apply(op,
                                          {{Op::x, like(x, dtype)},
                                           {Op::w, like(w, dtype)},
                                           {Op::bias, bias},
                                           {Op::initial_state, initial}},
                                          {Op::y, Op::final_state}, spec());
        keep(results[Op::y]);
        return keep(results[Op::final_state]);
      }
      using Op = CausalConvBackward;
      Op op;
      op.activation = activation;
      const auto results = graph_.apply(op,
                                        {{Op::x, like(x, dtype)},
                                         {Op::w, like(w, dtype)},
                                         {Op::dy, like(x, dtype)},
                                         {Op::bias, bias},
                                         {Op::initial_state, initial}},
                                        {Op::dx, Op::dw, Op::dbias});
      for (const Op::Out slot : {Op::dx, Op::dw, Op::dbias}) keep(results[slot]);
      return;
    }
    default: {
      const Value x = floating_value(1, 4);
      const double probability = 0.25 * static_cast<double>(below(4));
      if (chance(0.5)) {
        using Op = DropoutForward;
        Op op;
        op.probability = probability;
        op.seed = below(1000);
        const Value offset = chance(0.5) ? graph_.input(name("n"), {1}, i64) : Value();
        const auto results = graph_.apply(op, {{Op::x, x}, {Op::offset_tensor, offset}},
                                          {Op::y, Op::mask, Op::next_offset}, spec());
        keep(results[Op::y]);
        return keep(results[Op::mask]);
      }
      using Op = DropoutBackward;
      Op op;
      op.probability = probability;
      op.seed = below(1000);
      const Value mask = chance(0.5) ? like(x.dims(), boolean) : Value();
      return keep(graph_.apply(op, {{Op::dy, x}, {Op::mask, mask}}, {Op::dx}, spec()));
    }
  }
}

}  // namespace ashlar::random_graphs
