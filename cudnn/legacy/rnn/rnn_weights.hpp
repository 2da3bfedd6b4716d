// Where the matrices and biases of a recurrent network lie in its weights.
#pragma once

#include <ashlar/ops/recurrent.hpp>
#include <cstdint>

namespace ashlar::cudnn {

// Rows and columns of a matrix, and its first element in the weights. One without rows does not
// exist.
struct RnnPart {
  std::int64_t offset = 0, rows = 0, columns = 0;
};

// The order of docs/ops/recurrent.md, cut into cuDNN's linear layers: with G gates, 0 to G - 1
// multiply the layer's input, G to 2 G - 1 the state, and 2 G of an lstm projects.
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
