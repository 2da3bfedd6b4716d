// How scatter combines an element of y with a contribution.
enum Combine { kSet, kAdd, kMul, kMin, kMax };

__device__ inline R combined(R a, R b) {
  switch (kCombine) {
    case kAdd: return a + b;
    case kMul: return a * b;
    case kMin: return op_min(a, b);
    case kMax: return op_max(a, b);
    default: return b;
  }
}
