#include "cuda/engine_table.hpp"

#include <array>

#include "cuda/engines/engines.hpp"

namespace ashlar::cuda {

EngineTable engine_table() {
  static const auto table = std::to_array<const Engine*>({
      &row_norm_engine(),        &channel_norm_engine(),
      &resample_engine(),        &reduction_engine(),
      &cross_entropy_engine(),   &rope_engine(),
      &depthwise_engine(),       &conv_sm90_engine(),
      &conv_direct_engine(),     &gemm_sm90_engine(),
      &moe_sm90_engine(),        &moe_wgrad_sm90_engine(),
      &conv_wgrad_sm90_engine(), &gemm_skinny_engine(),
      &gemm_sm80_engine(),       &conv_sm80_engine(),
      &pointwise_tiled_engine(), &pointwise_engine(),
      &attention_sm90_engine(),  &attention_backward_sm90_engine(),
      &attention_sm80_engine(),  &gather_engine(),
      &scatter_engine(),         &generic_engine(),
  });
  return table;
}

}  // namespace ashlar::cuda
