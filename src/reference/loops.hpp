// Loops over tensor coordinates.
#pragma once

#include <ashlar/dims.hpp>
#include <cstdint>

namespace ashlar::reference {

using Index = Dims;  // one coordinate per axis

// The only use of threads in this folder. `body` must not throw.
template <class Body>
void parallel_for(std::int64_t count, const Body& body) {
#ifdef _OPENMP
#pragma omp parallel for schedule(static) if (count >= 16)
#endif
  for (std::int64_t i = 0; i < count; ++i) body(i);
}

// Position of an index in row-major order, and back.
inline std::int64_t flatten(const Dims& dims, const Index& index) {
  std::int64_t position = 0;
  for (int axis = 0; axis < dims.rank(); ++axis) position = position * dims[axis] + index[axis];
  return position;
}
inline Index unflatten(const Dims& dims, std::int64_t position) {
  Index index = dims;
  for (int axis = dims.rank() - 1; axis >= 0; --axis) {
    index[axis] = position % dims[axis];
    position /= dims[axis];
  }
  return index;
}

// A range of coordinates on every axis.
struct Box {
  Index begin;
  Index end;

  static Box all(const Dims& dims) { return {Dims::filled(dims.rank(), 0), dims}; }
  bool empty() const {
    for (int axis = 0; axis < begin.rank(); ++axis)
      if (begin[axis] >= end[axis]) return true;
    return false;
  }
  std::int64_t size() const {
    std::int64_t count = 1;
    for (int axis = 0; axis < begin.rank(); ++axis)
      count *= std::max<std::int64_t>(end[axis] - begin[axis], 0);
    return count;
  }
  friend Box intersection(const Box& a, const Box& b) {
    Box both = a;
    for (int axis = 0; axis < a.begin.rank(); ++axis) {
      both.begin[axis] = std::max(a.begin[axis], b.begin[axis]);
      both.end[axis] = std::min(a.end[axis], b.end[axis]);
    }
    return both;
  }
};

// Calls body(index) for every index of the box, the last axis varying fastest.
template <class Body>
void for_each_in(const Box& box, const Body& body) {
  if (box.empty()) return;
  Index index = box.begin;
  while (true) {
    body(static_cast<const Index&>(index));
    int axis = index.rank() - 1;
    for (; axis >= 0; --axis) {
      if (++index[axis] < box.end[axis]) break;
      index[axis] = box.begin[axis];
    }
    if (axis < 0) return;
  }
}

// Calls body(index) for every index of a tensor with these extents, in parallel.
template <class Body>
void for_each(const Dims& dims, const Body& body) {
  parallel_for(Box::all(dims).size(), [&](std::int64_t i) { body(unflatten(dims, i)); });
}

}  // namespace ashlar::reference
