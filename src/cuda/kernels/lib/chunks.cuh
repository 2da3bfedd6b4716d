// Loops over the packets of a thread with several loads in flight.
#pragma once

template <int kValue> struct Constant {
  static const int value = kValue;
};
// Calls body(Constant, i) for packets i..., kChunk at a time, then one by one.
template <int kChunk, class Index, class Body>
__device__ inline void in_chunks(Index packets, const Body& body) {
  Index i = 0;
  if constexpr (kChunk > 1)
    for (; i + kChunk <= packets; i += kChunk) body(Constant<kChunk>(), i);
  for (; i < packets; ++i) body(Constant<1>(), i);
}
// Fewer than 2 * kChunk packets from i on: kChunk of them, then half as many, down to one.
template <int kChunk, class Index, class Body>
__device__ inline void in_last_chunks(Index packets, const Body& body, Index i) {
  if constexpr (kChunk > 0) {
    if (i + kChunk <= packets) {
      body(Constant<kChunk>(), i);
      i += kChunk;
    }
    in_last_chunks<kChunk / 2>(packets, body, i);
  }
}
// Calls body(Constant, i) for packets i..., kChunk at a time (a power of two), the remainder in
// halves of that.
template <int kChunk, class Index, class Body>
__device__ inline void in_halved_chunks(Index packets, const Body& body) {
  Index i = 0;
#pragma unroll 1
  for (; i + kChunk <= packets; i += kChunk) body(Constant<kChunk>(), i);
  in_last_chunks<kChunk / 2>(packets, body, i);
}
// Calls body(Constant<kChunk>, i, valid) for packets i..., kChunk at a time; of the last
// batch only the first `valid` exist.
template <int kChunk, class Index, class Body>
__device__ inline void in_filled_chunks(Index packets, const Body& body) {
  Index i = 0;
  for (; i + kChunk <= packets; i += kChunk) body(Constant<kChunk>(), i, kChunk);
  if (i < packets) body(Constant<kChunk>(), i, (int)(packets - i));
}
