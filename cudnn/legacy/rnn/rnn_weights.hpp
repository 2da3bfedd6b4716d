// The layout of matrices and biases in the weight space of a recurrent network.
#pragma once

#include <ashlar/ops/recurrent.hpp>
#include <cstdint>

namespace ashlar::cudnn {

// A matrix or bias: its extents and the index of its first element. Zero rows: it does not exist.
struct RnnPart {
  std::int64_t offset = 0, rows = 0, columns = 0;
};

// The weight order of docs/ops/recurrent.md, split into cuDNN's linear layers. With G gates,
// linLayerID 0 to G - 1 multiply the layer input, G to 2 G - 1 the hidden state, and 2 G is the
// LSTM projection.
class RnnWeightLayout {
 public:
  RnnWeightLayout(const RnnAttributes& network, std::int64_t input_size);

  std::int64_t gates() const { return gates_; }
  std::int64_t output_size() const { return output_; }
  std::int64_t directions() const { return directions_; }
  std::int64_t pseudo_layers() const { return directions_ * network_.layers; }
  std::int64_t linear_layers() const;
  std::int64_t count() const;

  RnnPart matrix(std::int64_t pseudo_layer, std::int64_t linear_layer) const;
  RnnPart bias(std::int64_t pseudo_layer, std::int64_t linear_layer) const;

 private:
  std::int64_t matrices_before(std::int64_t pseudo_layer) const;  // elements
  std::int64_t input_columns(std::int64_t pseudo_layer) const;    // 0: no input matrix
  std::int64_t matrices(std::int64_t pseudo_layer) const;         // elements
  std::int64_t biases() const;                                    // elements of one pseudo-layer
  bool has_input_bias() const;
  bool has_recurrent_bias() const;
  RnnAttributes network_;
  std::int64_t input_, gates_, output_, directions_;
};

}  // namespace ashlar::cudnn
