// Coordinates of gather and scatter: of the selection (y of gather, source of scatter), of the
// index and of the whole tensor, whose coordinate kAxis is the value of the index.
template <int kSelection, int kIndex>
__device__ inline void index_place(const Index (&at)[kSelection], Index (&where)[kIndex]) {
#pragma unroll
  for (int axis = 0; axis < kIndex; ++axis) where[axis] = at[kSlices ? kAxis + axis : axis];
}
template <int kSelection, int kWhole>
__device__ inline void whole_place(const Index (&at)[kSelection], Index position,
                                   Index (&whole)[kWhole]) {
#pragma unroll
  for (int axis = 0; axis < kWhole; ++axis)
    whole[axis] = axis == kAxis ? position : at[axis < kAxis ? axis : axis + kSelection - kWhole];
}
template <int kWhole, int kIndex, int kSelection>
__device__ inline void selection_place(const Index (&whole)[kWhole], const Index (&where)[kIndex],
                                       Index (&at)[kSelection]) {
#pragma unroll
  for (int axis = 0; axis < kSelection; ++axis) {
    if (!kSlices && axis == kAxis)
      at[axis] = where[axis < kIndex ? axis : 0];
    else if (!kSlices)
      at[axis] = whole[axis < kWhole ? axis : 0];
    else if (axis < kAxis)
      at[axis] = whole[axis < kWhole ? axis : 0];
    else if (axis < kAxis + kIndex)
      at[axis] = where[axis - kAxis];
    else
      at[axis] = whole[axis - kIndex + 1];
  }
}
