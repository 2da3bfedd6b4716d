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
// Fewer than 2 * kTogether packets from i on: kTogether of them, half as many, down to one.
template <int kTogether, class Index, class Body>
__device__ inline void in_last_chunks(Index packets, const Body& body, Index i) {
  if constexpr (kTogether > 0) {
    if (i + kTogether <= packets) {
      body(Constant<kTogether>(), i);
      i += kTogether;
    }
    in_last_chunks<kTogether / 2>(packets, body, i);
  }
}
// Calls body(Constant, i) for packets i..., kTogether of them and in the end by halves of that, a
// power of two.
template <int kTogether, class Index, class Body>
__device__ inline void in_halved_chunks(Index packets, const Body& body) {
  Index i = 0;
#pragma unroll 1
  for (; i + kTogether <= packets; i += kTogether) body(Constant<kTogether>(), i);
  in_last_chunks<kTogether / 2>(packets, body, i);
}
// Calls body(Constant<kTogether>, i, valid) for packets i..., kTogether of them; of the last ones
// only the first `valid` are there.
template <int kTogether, class Index, class Body>
__device__ inline void in_filled_chunks(Index packets, const Body& body) {
  Index i = 0;
  for (; i + kTogether <= packets; i += kTogether) body(Constant<kTogether>(), i, kTogether);
  if (i < packets) body(Constant<kTogether>(), i, (int)(packets - i));
}
