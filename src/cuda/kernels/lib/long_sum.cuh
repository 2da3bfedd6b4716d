// Blocked summation of many terms by one thread: the rounding error grows with kTerms + n / kTerms
// instead of n.
template <class R>
struct LongSum {
  static const int kTerms = 64;
  R whole = 0, part = 0;
  int left = kTerms;

  __device__ inline void add_product(R a, R b) {
    part += a * b;
    if (--left > 0) return;
    whole += part;
    part = 0;
    left = kTerms;
  }
  __device__ inline R total() const { return whole + part; }
};
