// What batch normalisation is made of when its statistics come from another operation. Everything
// is per channel: axis 1.
__device__ inline void channel_position(int64 channel, Index (&at)[kRank]) {
  for (int axis = 0; axis < kRank; ++axis) at[axis] = axis == 1 ? channel : 0;
}
