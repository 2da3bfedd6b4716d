// Splits the MoE backward into its two gradients, which share no work. dweight stays an
// MoeGroupedMatmulBackward; dtoken becomes a forward grouped matmul of doutput with transposed
// weights and inverse routing: rows that were gathered are scattered back and summed.
#include "plan/expand.hpp"

namespace ashlar {

namespace {

using Backward = MoeGroupedMatmulBackward;
using Forward = MoeGroupedMatmul;

// The output row of each routed row: token_index * top_k + token_ks, out of range for dropped rows.
// In f64, which represents every possible row exactly; a negative index yields a negative row.
TensorId destination_rows(const Backward& op, Expansion& e) {
  const TensorId index = e.input(Backward::token_index), rank = e.input(Backward::token_ks);
  const auto compare = [&](PointwiseMode mode, double limit, const char* role) {
    return e.pointwise(mode, {rank, e.constant(limit, 3, std::string(role) + "_limit")},
                       {.role = role, .dtype = boolean}, f64);
  };
  const TensorId place =
      e.add(Pointwise{.mode = PointwiseMode::add, .alpha1 = static_cast<double>(op.top_k)},
            {index, rank}, {.role = "place", .dtype = f64}, f64);
  const TensorId is_rank =
      e.pointwise(PointwiseMode::logical_and,
                  {compare(PointwiseMode::cmp_ge, 0, "not_below"),
                   compare(PointwiseMode::cmp_lt, static_cast<double>(op.top_k), "not_above")},
                  {.role = "is_rank", .dtype = boolean});
  return e.pointwise(PointwiseMode::binary_select, {place, e.constant(-1, 3, "nowhere"), is_rank},
                     {.role = "places", .dtype = i64}, f64);
}

}  // namespace

bool expand(const MoeGroupedMatmulBackward& op, Expansion& e) {
  constexpr std::int64_t kMaxRanks = 1 << 24;  // exactly representable in an f32 constant
  if (e.node().outputs.size() <= Backward::dtoken || e.output(Backward::dtoken) == kNoTensor ||
      op.top_k > kMaxRanks)
    return false;
  e.begin();
  const TensorId doutput = e.input(Backward::doutput), weight = e.input(Backward::weight),
                 first = e.input(Backward::first_token_offset);

  std::vector<TensorId> of_weights = e.node().inputs;
  // dweight reads only the number of experts from the weights.
  if (e.dims(weight)[0] == e.dims(first)[0]) of_weights[Backward::weight] = kNoTensor;
  e.make(op, of_weights, Backward::dweight);

  Forward product;
  std::vector<TensorId> of_tokens = {doutput, e.transpose(weight, {0, 2, 1}), first};
  if (op.mode == MoeMode::gather) {
    const TensorId index = e.input(Backward::token_index);
    product.mode = MoeMode::scatter;
    of_tokens.push_back(index);
    of_tokens.push_back(
        e.pointwise(PointwiseMode::sub, {index, index}, {.role = "only_rank", .dtype = i32}));
  } else if (op.mode == MoeMode::scatter) {
    product.mode = MoeMode::gather;
    of_tokens.push_back(destination_rows(op, e));
  }
  e.make(product, of_tokens, Backward::dtoken);
  return true;
}

}  // namespace ashlar
