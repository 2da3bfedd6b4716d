// Views: transposes, reshapes and broadcasts between tensor layouts.
#include <algorithm>
#include <numeric>

#include "backend/translate/translation.hpp"

namespace ashlar::cudnn {

namespace {

// The axes with extent above 1 by decreasing stride, i.e. in memory order.
Dims memory_order(const TensorFacts& facts) {
  Dims axes;
  for (int axis = 0; axis < facts.dims.rank(); ++axis)
    if (facts.dims[axis] != 1) axes.push_back(axis);
  std::stable_sort(axes.begin(), axes.end(), [&](std::int64_t a, std::int64_t b) {
    return facts.strides[static_cast<int>(a)] > facts.strides[static_cast<int>(b)];
  });
  return axes;
}

Dims picked(const Dims& dims, const Dims& axes) {
  Dims picked;
  for (std::int64_t axis : axes) picked.push_back(dims[static_cast<int>(axis)]);
  if (picked.empty()) picked.push_back(1);
  return picked;
}

Dims without_ones(const Dims& dims) {
  Dims rest;
  for (std::int64_t extent : dims)
    if (extent != 1) rest.push_back(extent);
  if (rest.empty()) rest.push_back(1);
  return rest;
}

bool is_rising(const Dims& axes) { return std::is_sorted(axes.begin(), axes.end()); }

}  // namespace

TensorId Translation::reinterpreted(TensorId id, const TensorFacts& from, const TensorFacts& to) {
  const DType dtype = tensor(id).dtype;
  const Dims source = memory_order(from), target = memory_order(to);
  // A single transpose when both layouts have the same axes: the planner folds it best.
  if (from.dims.rank() == to.dims.rank() && picked(from.dims, source) == picked(to.dims, target)) {
    Dims permutation;
    for (int axis = 0; axis < to.dims.rank(); ++axis) permutation.push_back(-1);
    for (int position = 0; position < target.rank(); ++position)
      permutation[static_cast<int>(target[position])] = source[position];
    std::vector<std::int64_t> spare;  // axes of extent 1 fill the remaining positions
    for (int axis = 0; axis < from.dims.rank(); ++axis)
      if (std::find(source.begin(), source.end(), axis) == source.end()) spare.push_back(axis);
    std::size_t next = 0;
    for (std::int64_t& axis : permutation)
      if (axis < 0) axis = spare[next++];
    return is_rising(permutation) ? id : value(Transpose{permutation}, {id}, dtype);
  }
  // Transpose to memory order, reshape to the other extents, transpose back.
  const Dims squeezed = without_ones(from.dims);
  if (squeezed != dims(id)) id = value(Reshape{squeezed}, {id}, dtype);
  const auto ranks_of = [](const Dims& axes) {
    Dims ranks;
    for (std::int64_t axis : axes)
      ranks.push_back(std::count_if(axes.begin(), axes.end(),
                                    [&](std::int64_t other) { return other < axis; }));
    return ranks;
  };
  if (!is_rising(source)) id = value(Transpose{ranks_of(source)}, {id}, dtype);
  const Dims stored = picked(to.dims, target);
  if (stored != dims(id)) id = value(Reshape{stored}, {id}, dtype);
  if (!is_rising(target)) {
    const Dims ranks = ranks_of(target);
    Dims inverse = ranks;
    for (int position = 0; position < ranks.rank(); ++position)
      inverse[static_cast<int>(ranks[position])] = position;
    id = value(Transpose{inverse}, {id}, dtype);
  }
  return to.dims == dims(id) ? id : value(Reshape{to.dims}, {id}, dtype);
}

TensorId Translation::with_rank(TensorId id, int rank) {
  if (id == kNoTensor || dims(id).rank() >= rank) return id;
  const Tensor source = tensor(id);
  Dims wider = Dims::filled(rank - source.dims.rank(), 1);
  for (std::int64_t extent : source.dims) wider.push_back(extent);
  if (source.kind == TensorKind::constant) return constant(source.value, source.dtype, rank);
  if (source.kind != TensorKind::scalar) return value(Reshape{wider}, {id}, source.dtype);
  const auto bound = std::find_if(bound_.begin(), bound_.end(),
                                  [&](const BoundUid& row) { return row.tensor == id; });
  TensorFacts facts;
  facts.uid = bound->uid;
  facts.dtype = source.dtype;
  facts.dims = wider;
  facts.strides = Dims::filled(rank, 1);
  facts.is_by_value = true;
  return input_of(facts, "");
}

TensorId Translation::repeated(TensorId id, int axis, std::int64_t times) {
  if (times == 1) return id;
  const Dims whole = dims(id);
  const DType dtype = tensor(id).dtype;
  Dims split, joined = whole;
  for (int a = 0; a < whole.rank(); ++a) {
    split.push_back(whole[a]);
    if (a == axis) split.push_back(1);
  }
  joined[axis] = whole[axis] * times;
  const TensorId one = value(Reshape{split}, {id}, dtype);
  Dims repeated_dims = split;
  repeated_dims[axis + 1] = times;
  return value(Reshape{joined}, {expanded(one, repeated_dims)}, dtype);
}

TensorId Translation::expanded(TensorId id, const Dims& wanted) {
  id = with_rank(id, wanted.rank());
  const DType dtype = tensor(id).dtype;
  for (int axis = 0; axis < wanted.rank(); ++axis) {
    if (dims(id)[axis] != 1 || wanted[axis] == 1) continue;
    // Up to kMaxCopies copies per concat node, then copies of the copies.
    constexpr std::int64_t kMaxCopies = 64;
    while (dims(id)[axis] < wanted[axis]) {
      const std::int64_t have = dims(id)[axis];
      const std::int64_t copies = std::min(kMaxCopies, (wanted[axis] + have - 1) / have);
      id = value(Concat{axis}, std::vector<TensorId>(static_cast<std::size_t>(copies), id), dtype);
    }
    if (dims(id)[axis] > wanted[axis]) {
      Dims limit = dims(id);
      limit[axis] = wanted[axis];
      id = value(Slice{Dims::filled(limit.rank(), 0), limit, {}}, {id}, dtype);
    }
  }
  return id;
}

}  // namespace ashlar::cudnn
