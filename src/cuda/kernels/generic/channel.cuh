// Coordinates of a channel (axis 1), for the building blocks of batch norm whose statistics come
// from another operation.
__device__ inline void channel_position(int64 channel, Index (&at)[kRank]) {
  for (int axis = 0; axis < kRank; ++axis) at[axis] = axis == 1 ? channel : 0;
}
