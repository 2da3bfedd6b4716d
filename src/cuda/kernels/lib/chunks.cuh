// Many packets of a thread, some of them on the way at a time.
#pragma once

template <int kValue> struct Constant {
  static const int value = kValue;
};
// Calls body(Constant, i) for packets i..., kTogether of them and then one by one.
template <int kTogether, class Index, class Body>
__device__ inline void in_chunks(Index packets, const Body& body) {
  Index i = 0;
  if constexpr (kTogether > 1)
    for (; i + kTogether <= packets; i += kTogether) body(Constant<kTogether>(), i);
  for (; i < packets; ++i) body(Constant<1>(), i);
}
// Calls body(Constant<kTogether>, i, valid) for packets i..., kTogether of them; of the last ones
// only the first `valid` are there.
template <int kTogether, class Index, class Body>
__device__ inline void in_filled_chunks(Index packets, const Body& body) {
  Index i = 0;
  for (; i + kTogether <= packets; i += kTogether) body(Constant<kTogether>(), i, kTogether);
  if (i < packets) body(Constant<kTogether>(), i, (int)(packets - i));
}
