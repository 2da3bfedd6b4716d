// One time step of a recurrent cell over rows of hidden units, forward and backward.
#pragma once

#include <ashlar/ops.hpp>
#include <cstdint>

namespace ashlar::cpu {

// Clipping of an LSTM's cell state.
template <class T>
struct RnnClip {
  bool low = false, high = false, nan = false;
  T low_value = 0, high_value = 0;
};

// Gate k of a row is k strides after the first. LSTM: i f g o; GRU: r z n; otherwise one gate.
template <class T>
struct RnnCellForward {
  const T* input;  // input GEMM plus biases
  std::int64_t input_stride;
  const T* recurrent;  // recurrent GEMM
  std::int64_t recurrent_stride;
  const T* new_bias;  // GRU: recurrent bias of the new gate
  const T* previous;  // LSTM: cell; GRU: state; else null
  T* gates;           // after the activation
  std::int64_t gate_stride;
  T* inner;   // LSTM: cell; GRU: recurrent term of the new gate with bias; else null
  T* hidden;  // may alias `previous` for GRU; for relu and tanh it is the gate
};

template <class T>
struct RnnCellBackward {
  const T* gates;
  std::int64_t gate_stride;
  const T* inner;
  const T* previous;
  const T* d_hidden;
  T* d_cell;   // LSTM: in, gradient of the cell; out, of the previous cell
  T* d_gates;  // before the activation
  std::int64_t d_gate_stride;
  T* d_recurrent_new;  // GRU: gradient of the new gate's recurrent term
  T* d_direct;         // GRU: gradient that bypasses the gates to the previous state
};

template <class T>
struct RnnCells {
  void (*forward)(const RnnCellForward<T>& row, const RnnClip<T>& clip, std::int64_t units);
  void (*backward)(const RnnCellBackward<T>& row, const RnnClip<T>& clip, std::int64_t units);
};

// The best implementation for this CPU.
template <class T>
RnnCells<T> rnn_cells(RnnMode mode);

}  // namespace ashlar::cpu
