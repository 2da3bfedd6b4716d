// y[n, (c, k), o] = x[n, c, o * stride - padding + k * dilation], or 0 outside x.
#include "reference/evaluate.hpp"

namespace ashlar::reference {

namespace {

// Number of windows along each spatial axis.
Dims window_counts(const Im2Col& op, const Dims& x) {
  Dims counts;
  for (int axis = 0; axis < op.window.rank(); ++axis) {
    const std::int64_t padding = per_axis(op.padding, axis, 0);
    const std::int64_t after = op.post_padding ? (*op.post_padding)[axis] : padding;
    const std::int64_t reach = (op.window[axis] - 1) * per_axis(op.dilation, axis, 1) + 1;
    counts.push_back((x[axis + 2] + padding + after - reach) / per_axis(op.stride, axis, 1) + 1);
  }
  return counts;
}

}  // namespace

template <class Operands>
void evaluate(const Im2Col& op, const Operands& operands) {
  using Scalar = typename Operands::Scalar;
  const auto x = operands.input(Im2Col::x);
  const auto y = operands.output(Im2Col::y);
  const Dims counts = window_counts(op, x.dims());
  const std::int64_t window = element_count(op.window);
  for_each(y.dims(), [&](const Index& index) {
    const Index k = unflatten(op.window, index[1] % window), out = unflatten(counts, index[2]);
    Index in = {index[0], index[1] / window};
    bool inside = true;
    for (int axis = 0; axis < out.rank(); ++axis) {
      in.push_back(out[axis] * per_axis(op.stride, axis, 1) - per_axis(op.padding, axis, 0) +
                   k[axis] * per_axis(op.dilation, axis, 1));
      inside = inside && in[axis + 2] >= 0 && in[axis + 2] < x.dims()[axis + 2];
    }
    y.store(index, inside ? x.load(in) : Scalar(0.0));
  });
}
ASHLAR_REFERENCE(Im2Col);

}  // namespace ashlar::reference
