// Ragged tensors for operations without ragged support: sequences are gathered into a padded tensor
// before the operation and scattered after it. Sequence b of a ragged tensor [B, H, S, D] (or [B,
// H, D, S]) starts at element offset[b] and has (offset[b + 1] - offset[b]) / stride(S) positions.
#include "backend/translate/translation.hpp"

namespace ashlar::cudnn {

namespace {

// The sequence axis: of the last two, the one with the larger stride.
int time_axis(const TensorFacts& facts) {
  if (facts.dims.rank() != 4)
    fail(CUDNN_STATUS_BAD_PARAM,
         "tensor {}: CUDNN_ATTR_TENSOR_RAGGED_OFFSET_DESC: got a tensor with {} axes, expected 4",
         facts.uid, facts.dims.rank());
  return facts.strides[3] > facts.strides[2] ? 3 : 2;
}

}  // namespace

// offset[first + b] / stride, [B, 1, 1, 1].
TensorId Translation::sequence_starts(const TensorFacts& facts, std::int64_t first) {
  const TensorId offsets = operand(*facts.ragged_offset);
  const Dims shape = dims(offsets);
  if (shape.empty() || shape[0] != facts.dims[0] + 1 || element_count(shape) != shape[0])
    fail(CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
         "tensor {}: dims of CUDNN_ATTR_TENSOR_RAGGED_OFFSET_DESC: got {}, expected [{}, 1, 1, 1]",
         facts.uid, to_string(shape), facts.dims[0] + 1);
  Dims start = Dims::filled(shape.rank(), 0), limit = shape;
  start[0] = first;
  limit[0] = first + facts.dims[0];
  const DType dtype = tensor(offsets).dtype;
  TensorId rows = value(Slice{start, limit, {}}, {offsets}, dtype);
  if (shape.rank() != 4) rows = value(Reshape{{facts.dims[0], 1, 1, 1}}, {rows}, dtype);
  const std::int64_t step = facts.strides[time_axis(facts)];
  return pointwise(PointwiseMode::div, {rows, constant(static_cast<double>(step), dtype, 4)}, dtype,
                   dtype);
}

TensorId Translation::sequence_lengths(const TensorFacts& facts) {
  const TensorId begin = sequence_starts(facts, 0), end = sequence_starts(facts, 1);
  const DType dtype = tensor(begin).dtype;
  return pointwise(PointwiseMode::sub, {end, begin}, dtype, dtype);
}

TensorId Translation::padded(const TensorFacts& facts) {
  const int time = time_axis(facts), depth = time == 3 ? 2 : 3;
  const std::int64_t length = facts.dims[time];
  // All positions of all sequences, concatenated: a paged cache with one position per page.
  TensorFacts pages = facts;
  pages.ragged_offset = nullptr;
  pages.dims = {facts.dims[0] * length, facts.dims[1], 1, facts.dims[depth]};
  pages.strides = {facts.strides[time], facts.strides[1], 1, facts.strides[depth]};
  const TensorId container = input_of(pages, "");
  const TensorId starts = sequence_starts(facts, 0);
  const DType dtype = tensor(starts).dtype;
  const TensorId all = expanded(starts, {facts.dims[0], 1, length, 1});
  Pointwise position;
  position.mode = PointwiseMode::gen_index;
  position.axis = 2;
  const TensorId index = value(position, {all}, dtype, dtype);
  const TensorId table = pointwise(PointwiseMode::add, {starts, index}, dtype, dtype);
  PagedCacheLoad load;
  load.transposed = time == 3;
  return value(load, {container, table, sequence_lengths(facts)}, facts.dtype, f32, facts.dims);
}

// A scatter is written as attention, which can write ragged outputs: each query attends only to the
// key at its own position, so o is a copy of v.
void Translation::write_ragged(TensorId source, const TensorFacts& facts) {
  TensorFacts memory = facts;
  if (time_axis(facts) == 3) {
    source = value(Transpose{{0, 1, 3, 2}}, {source}, facts.dtype);
    std::swap(memory.dims[2], memory.dims[3]);
    std::swap(memory.strides[2], memory.strides[3]);
  }
  const Dims shape = dims(source);
  Dims limit = shape;
  limit[3] = 1;
  // The scores do not matter. Zero operands keep infinities of the data out of them.
  const TensorId thin = value(Slice{Dims::filled(4, 0), limit, {}}, {source}, facts.dtype);
  const TensorId zero = pointwise(PointwiseMode::binary_select,
                                  {constant(0, f32, 4), constant(0, f32, 4),
                                   pointwise(PointwiseMode::cmp_eq, {thin, thin}, boolean)},
                                  f32);
  const TensorId lengths = sequence_lengths(facts);
  AttentionForward copy;
  copy.scale = 1.0;
  copy.left_bound = 1;
  copy.right_bound = 0;
  std::vector<TensorId> inputs(AttentionForward::seq_len_kv + 1, kNoTensor);
  inputs[AttentionForward::q] = zero;
  inputs[AttentionForward::k] = zero;
  inputs[AttentionForward::v] = source;
  inputs[AttentionForward::seq_len_q] = lengths;
  inputs[AttentionForward::seq_len_kv] = lengths;
  add(copy, inputs, {memory_of(memory, TensorKind::output, "")});
}

}  // namespace ashlar::cudnn
