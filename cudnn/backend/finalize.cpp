#include "backend/finalize.hpp"

#include <array>

namespace ashlar::cudnn {

namespace {

// Descriptors that only the library fills have nothing to check.
FinishedRef finalize_info(const Record&) { return attributes_only(); }

using Finalize = FinishedRef (*)(const Record&);
// Indexed by cudnnBackendDescriptorType_t.
constexpr std::array<Finalize, 44> kFinalize = {
    finalize_pointwise,                    // 0
    finalize_convolution,                  // 1
    finalize_engine,                       // 2
    finalize_engine_config,                // 3
    finalize_heuristics,                   // 4
    finalize_execution_plan,               // 5
    finalize_info,                         // 6: INTERMEDIATE_INFO
    finalize_knob_choice,                  // 7
    finalize_info,                         // 8: KNOB_INFO
    finalize_info,                         // 9: LAYOUT_INFO
    finalize_convolution_forward,          // 10
    finalize_convolution_backward_filter,  // 11
    finalize_convolution_backward_data,    // 12
    finalize_pointwise_operation,          // 13
    finalize_gen_stats,                    // 14
    finalize_operation_graph,              // 15
    finalize_variant_pack,                 // 16
    finalize_tensor,                       // 17
    finalize_matmul,                       // 18
    finalize_matmul_operation,             // 19
    finalize_bn_finalize,                  // 20
    finalize_reduction,                    // 21
    finalize_reduction_operation,          // 22
    finalize_bn_backward_weights,          // 23
    finalize_resample,                     // 24
    finalize_resample_forward,             // 25
    finalize_resample_backward,            // 26
    finalize_concat,                       // 27
    finalize_signal,                       // 28
    finalize_norm_forward,                 // 29
    finalize_norm_backward,                // 30
    finalize_reshape,                      // 31
    finalize_rng,                          // 32
    finalize_rng_operation,                // 33
    finalize_kernel_cache,                 // 34
    finalize_paged_cache_load,             // 35
    finalize_block_scale_quantize,         // 36
    finalize_block_scale_dequantize,       // 37
    finalize_device,                       // 38
    finalize_expand_band_matrix,           // 39
    finalize_contract_band_matrix,         // 40
    finalize_sdpa_forward,                 // 41
    finalize_moe_grouped_matmul,           // 42
    finalize_sdpa_backward,                // 43
};

}  // namespace

FinishedRef attributes_only() {
  static const FinishedRef nothing = std::make_shared<const Finished>();
  return nothing;
}

FinishedRef finalize(const Record& record) { return kFinalize.at(record.type)(record); }

}  // namespace ashlar::cudnn
