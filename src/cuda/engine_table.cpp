#include "cuda/engine_table.hpp"

#include <array>

#include "cuda/engines/engines.hpp"

namespace ashlar::cuda {

EngineTable engine_table() {
  static const std::array<const Engine*, 9> table = {
      &row_norm_engine(),
      &channel_norm_engine(),
      &resample_engine(),
      &depthwise_engine(),
      &gemm_sm80_engine(),
      &conv_sm80_engine(),
      &pointwise_tiled_engine(),
      &pointwise_engine(),
      &generic_engine(),
  };
  return table;
}

}  // namespace ashlar::cuda
