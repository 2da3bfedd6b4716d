// Replaced soon by the checks.
#include "backend/finalize.hpp"
namespace ashlar::cudnn {
__attribute__((weak)) FinishedRef finalize_tensor(const Record&) { return nothing_made(); }
__attribute__((weak)) FinishedRef finalize_pointwise(const Record&) { return nothing_made(); }
__attribute__((weak)) FinishedRef finalize_convolution(const Record&) { return nothing_made(); }
__attribute__((weak)) FinishedRef finalize_matmul(const Record&) { return nothing_made(); }
__attribute__((weak)) FinishedRef finalize_reduction(const Record&) { return nothing_made(); }
__attribute__((weak)) FinishedRef finalize_resample(const Record&) { return nothing_made(); }
__attribute__((weak)) FinishedRef finalize_rng(const Record&) { return nothing_made(); }
__attribute__((weak)) FinishedRef finalize_knob_choice(const Record&) { return nothing_made(); }
__attribute__((weak)) FinishedRef finalize_variant_pack(const Record&) { return nothing_made(); }
__attribute__((weak)) FinishedRef finalize_convolution_forward(const Record&) {
  return nothing_made();
}
__attribute__((weak)) FinishedRef finalize_convolution_backward_data(const Record&) {
  return nothing_made();
}
__attribute__((weak)) FinishedRef finalize_convolution_backward_filter(const Record&) {
  return nothing_made();
}
__attribute__((weak)) FinishedRef finalize_pointwise_operation(const Record&) {
  return nothing_made();
}
__attribute__((weak)) FinishedRef finalize_gen_stats(const Record&) { return nothing_made(); }
__attribute__((weak)) FinishedRef finalize_matmul_operation(const Record&) {
  return nothing_made();
}
__attribute__((weak)) FinishedRef finalize_bn_finalize(const Record&) { return nothing_made(); }
__attribute__((weak)) FinishedRef finalize_bn_backward_weights(const Record&) {
  return nothing_made();
}
__attribute__((weak)) FinishedRef finalize_reduction_operation(const Record&) {
  return nothing_made();
}
__attribute__((weak)) FinishedRef finalize_resample_forward(const Record&) {
  return nothing_made();
}
__attribute__((weak)) FinishedRef finalize_resample_backward(const Record&) {
  return nothing_made();
}
__attribute__((weak)) FinishedRef finalize_concat(const Record&) { return nothing_made(); }
__attribute__((weak)) FinishedRef finalize_signal(const Record&) { return nothing_made(); }
__attribute__((weak)) FinishedRef finalize_norm_forward(const Record&) { return nothing_made(); }
__attribute__((weak)) FinishedRef finalize_norm_backward(const Record&) { return nothing_made(); }
__attribute__((weak)) FinishedRef finalize_reshape(const Record&) { return nothing_made(); }
__attribute__((weak)) FinishedRef finalize_rng_operation(const Record&) { return nothing_made(); }
__attribute__((weak)) FinishedRef finalize_paged_cache_load(const Record&) {
  return nothing_made();
}
__attribute__((weak)) FinishedRef finalize_block_scale_quantize(const Record&) {
  return nothing_made();
}
__attribute__((weak)) FinishedRef finalize_block_scale_dequantize(const Record&) {
  return nothing_made();
}
__attribute__((weak)) FinishedRef finalize_expand_band_matrix(const Record&) {
  return nothing_made();
}
__attribute__((weak)) FinishedRef finalize_contract_band_matrix(const Record&) {
  return nothing_made();
}
__attribute__((weak)) FinishedRef finalize_sdpa_forward(const Record&) { return nothing_made(); }
__attribute__((weak)) FinishedRef finalize_sdpa_backward(const Record&) { return nothing_made(); }
__attribute__((weak)) FinishedRef finalize_moe_grouped_matmul(const Record&) {
  return nothing_made();
}
}  // namespace ashlar::cudnn
