// One step of a recurrent cell on rows of hidden units, forward and backward.
#pragma once

#include <ashlar/ops.hpp>
#include <cstdint>

namespace ashlar::cpu {

// Bounds of an lstm's cell state.
template <class T>
struct RnnClip {
  bool low = false, high = false, nan = false;
  T low_value = 0, high_value = 0;
};

// Gate k of a row stands k strides after its first gate. lstm: i f g o; gru: r z n; else one.
template <class T>
struct RnnCellForward {
  const T* input;  // products with the input and biases
  std::int64_t input_stride;
  const T* recurrent;  // products with the state
  std::int64_t recurrent_stride;
  const T* new_bias;  // gru: recurrent bias of the new gate
  const T* previous;  // lstm: cell; gru: state; else null
  T* gates;           // after the activation
  std::int64_t gate_stride;
  T* inner;   // lstm: cell; gru: recurrent product of the new gate with its bias; else null
  T* hidden;  // may be `previous` of a gru; of relu and tanh it is the gate
};

template <class T>
struct RnnCellBackward {
  const T* gates;
  std::int64_t gate_stride;
  const T* inner;
  const T* previous;
  const T* d_hidden;
  T* d_cell;   // lstm: in, the gradient of the cell; out, that of the previous cell
  T* d_gates;  // before the activation
  std::int64_t d_gate_stride;
  T* d_recurrent_new;  // gru: gradient of the new gate's recurrent product
  T* d_direct;         // gru: what reaches the previous state past the gates
};

template <class T>
struct RnnCells {
  void (*forward)(const RnnCellForward<T>& row, const RnnClip<T>& clip, std::int64_t units);
  void (*backward)(const RnnCellBackward<T>& row, const RnnClip<T>& clip, std::int64_t units);
};

// The functions for this processor.
template <class T>
RnnCells<T> rnn_cells(RnnMode mode);

}  // namespace ashlar::cpu
