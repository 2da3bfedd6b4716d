// Output rows to which no row or several rows are routed, one thread per element with a plain dot
// product: such rows are few. Requires the generated header and generic/moe_routing.cuh.
#include "lib/divide.cuh"
#include "lib/pointwise.cuh"
#include "lib/rows.cuh"

static const int kThreads = 256;

extern "C" __global__ void __launch_bounds__(kThreads)
    other_rows(const __grid_constant__ Args args) {
  const int* counts = (const int*)args.row_counts;
  const Index first = first_begin(args), end = rows(args), outputs = (Index)args.output_rows;
  for (Index to = blockIdx.x; to < outputs; to += gridDim.x) {
    if (counts[to] == 1) continue;
    for (Index column = threadIdx.x; column < (Index)args.columns; column += kThreads) {
      R sum[1] = {0};
      for (Index row = first; counts[to] > 0 && row < end; ++row) {
        if (destination(args, row, outputs) != to) continue;
        const Index expert = expert_of(args, row);
        for (Index k = 0; k < (Index)args.depth; ++k) {
          R token[1], weight[1];
          token_at<1>(args, {0, row, k}, token);
          weight_at<1>(args, {expert, column, k}, weight);
          sum[0] += token[0] * weight[0];
        }
      }
      Index at[kRank];
      locate_row(args, to, at);
      at[kRank - 1] = column;
      epilogue<1>(args, at, sum);
    }
  }
}
