// Linear element indices <-> coordinates, the last axis varying fastest.
#pragma once

#include "lib/integers.cuh"

template <int kRank>
__device__ inline void unflatten(int64 n, const int64* dims, int64 (&at)[kRank]) {
#pragma unroll
  for (int axis = kRank - 1; axis >= 0; --axis) {
    at[axis] = n % dims[axis];
    n /= dims[axis];
  }
}
template <int kRank>
__device__ inline int64 flatten(const int64* dims, const int64 (&at)[kRank]) {
  int64 n = 0;
#pragma unroll
  for (int axis = 0; axis < kRank; ++axis) n = n * dims[axis] + at[axis];
  return n;
}
template <int kRank>
__device__ inline bool is_inside(const int64* dims, const int64 (&at)[kRank]) {
  bool inside = true;
#pragma unroll
  for (int axis = 0; axis < kRank; ++axis)
    inside = inside && at[axis] >= 0 && at[axis] < dims[axis];
  return inside;
}
template <int kRank>
__device__ inline int64 product(const int64 (&dims)[kRank]) {
  int64 n = 1;
#pragma unroll
  for (int axis = 0; axis < kRank; ++axis) n *= dims[axis];
  return n;
}

// Coordinates of the only element of a tensor: `Origin<kRank_x>().at`.
template <int kRank>
struct Origin {
  int64 at[kRank > 0 ? kRank : 1] = {};
};

// A range of coordinates on every axis, visited in row-major order by
//   for (bool more = box.start(at); more; more = box.next(at))
template <int kRank>
struct Box {
  int64 begin[kRank], end[kRank];

  __device__ bool start(int64 (&at)[kRank]) const {
    bool any = true;
#pragma unroll
    for (int axis = 0; axis < kRank; ++axis) {
      at[axis] = begin[axis];
      any = any && begin[axis] < end[axis];
    }
    return any;
  }
  __device__ bool next(int64 (&at)[kRank]) const {
#pragma unroll
    for (int axis = kRank - 1; axis >= 0; --axis) {
      if (++at[axis] < end[axis]) return true;
      at[axis] = begin[axis];
    }
    return false;
  }
};
template <int kRank>
__device__ inline Box<kRank> whole_box(const int64* dims) {
  Box<kRank> box;
#pragma unroll
  for (int axis = 0; axis < kRank; ++axis) {
    box.begin[axis] = 0;
    box.end[axis] = dims[axis];
  }
  return box;
}
