// Extents of multi-head attention and the layout of its weights, shared by inference, the oracle,
// the planner and the cuDNN front end.
#pragma once

#include <array>
#include <ashlar/ops/multi_head_attention.hpp>

#include "base/checked.hpp"
#include "graph/graph_data.hpp"

namespace ashlar {

enum class MultiHeadPart : std::uint8_t { query, key, value, output };
inline constexpr std::array kMultiHeadParts = {MultiHeadPart::query, MultiHeadPart::key,
                                               MultiHeadPart::value, MultiHeadPart::output};

// A projection x -> W x + b in the weights. W is a row-major matrix [rows, columns]; rows of the
// query, key and value matrices are (head, projected element), columns of the output's are (head,
// element of the head).
struct MultiHeadProjection {
  bool present = false;
  std::int64_t rows = 0, columns = 0;
  std::int64_t matrix = 0, bias = 0;  // first elements in the weights
  std::int64_t matrix_size() const { return rows * columns; }
};

struct MultiHeadShape {
  std::int64_t batch, beams, queries, keys;
  std::int64_t key_beams;  // 1: all beams attend to one sequence of keys
  std::int64_t heads;
  std::int64_t q_size, k_size, v_size;              // vectors as given
  std::int64_t head_size, k_head_size, value_size;  // vectors of one head: q, k (equal), v
  std::int64_t o_size;
  bool has_biases;
  std::array<MultiHeadProjection, 4> projections = {};
  std::int64_t weight_count = 0;

  MultiHeadShape(const MultiHeadAttentionAttributes& op, const Dims& q, const Dims& k,
                 const Dims& v)
      : batch(q[0]),
        beams(q[1]),
        queries(q[2]),
        keys(k[2]),
        key_beams(k[1]),
        heads(op.heads),
        q_size(q[3]),
        k_size(k[3]),
        v_size(v[3]),
        head_size(op.q_projection > 0 ? op.q_projection : q_size),
        k_head_size(op.k_projection > 0 ? op.k_projection : k_size),
        value_size(op.v_projection > 0 ? op.v_projection : v_size),
        o_size(op.o_projection > 0 ? op.o_projection : checked_mul(heads, value_size)),
        has_biases(op.projection_biases) {
    place(MultiHeadPart::query, op.q_projection, checked_mul(heads, op.q_projection), q_size);
    place(MultiHeadPart::key, op.k_projection, checked_mul(heads, op.k_projection), k_size);
    place(MultiHeadPart::value, op.v_projection, checked_mul(heads, op.v_projection), v_size);
    place(MultiHeadPart::output, op.o_projection, op.o_projection, checked_mul(heads, value_size));
    if (!has_biases) return;
    for (MultiHeadProjection& projection : projections) {
      if (!projection.present) continue;
      projection.bias = weight_count;
      weight_count = checked_add(weight_count, projection.rows);
    }
  }

  const MultiHeadProjection& operator[](MultiHeadPart part) const {
    return projections[static_cast<std::size_t>(part)];
  }
  Dims o_dims() const { return {batch, beams, queries, o_size}; }
  // Which of k's beams a beam of q attends to.
  std::int64_t key_beam(std::int64_t beam) const { return key_beams == 1 ? 0 : beam; }
  // Row-major position of an attention weight, the index of its dropout decision. Beams that share
  // keys are adjacent.
  std::int64_t weight_position(std::int64_t b, std::int64_t beam, std::int64_t head, std::int64_t i,
                               std::int64_t j) const {
    const std::int64_t row = key_beams == 1 ? ((b * heads + head) * beams + beam) * queries + i
                                            : ((b * beams + beam) * heads + head) * queries + i;
    return row * keys + j;
  }

 private:
  void place(MultiHeadPart part, std::int64_t size, std::int64_t rows, std::int64_t columns) {
    if (size == 0) return;
    projections[static_cast<std::size_t>(part)] = {true, rows, columns, weight_count, 0};
    weight_count = checked_add(weight_count, checked_mul(rows, columns));
  }
};

}  // namespace ashlar
