// Loops over the packets of a thread with several loads in flight.
#pragma once

template <int kValue> struct Constant {
  static const int value = kValue;
};
// Calls body(Constant, i) for packets i..., kTogether at a time, then one by one.
template <int kTogether, class Index, class Body>
__device__ inline void in_chunks(Index packets, const Body& body) {
  Index i = 0;
  if constexpr (kTogether > 1)
    for (; i + kTogether <= packets; i += kTogether) body(Constant<kTogether>(), i);
  for (; i < packets; ++i) body(Constant<1>(), i);
}
// Fewer than 2 * kTogether packets from i on: kTogether of them, then half as many, down to one.
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
// Calls body(Constant, i) for packets i..., kTogether at a time (a power of two), the remainder in
// halves of that.
template <int kTogether, class Index, class Body>
__device__ inline void in_halved_chunks(Index packets, const Body& body) {
  Index i = 0;
#pragma unroll 1
  for (; i + kTogether <= packets; i += kTogether) body(Constant<kTogether>(), i);
  in_last_chunks<kTogether / 2>(packets, body, i);
}
// Calls body(Constant<kTogether>, i, valid) for packets i..., kTogether at a time; of the last
// batch only the first `valid` exist.
template <int kTogether, class Index, class Body>
__device__ inline void in_filled_chunks(Index packets, const Body& body) {
  Index i = 0;
  for (; i + kTogether <= packets; i += kTogether) body(Constant<kTogether>(), i, kTogether);
  if (i < packets) body(Constant<kTogether>(), i, (int)(packets - i));
}
