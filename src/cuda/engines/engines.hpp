// The engines of the CUDA backend, one per file.
#pragma once

#include "cuda/launch/kernel_design.hpp"

namespace ashlar::cuda {

const CudaEngine& attention_backward_sm90_engine();
const CudaEngine& attention_sm80_engine();
const CudaEngine& attention_sm90_engine();
const CudaEngine& channel_norm_engine();
const CudaEngine& conv_direct_engine();
const CudaEngine& gemm_skinny_engine();
const CudaEngine& gather_engine();
const CudaEngine& generic_engine();
const CudaEngine& conv_sm90_engine();
const CudaEngine& conv_wgrad_sm90_engine();
const CudaEngine& cross_entropy_engine();
const CudaEngine& depthwise_engine();
const CudaEngine& gemm_sm90_engine();
const CudaEngine& conv_sm80_engine();
const CudaEngine& gemm_sm80_engine();
const CudaEngine& moe_sm90_engine();
const CudaEngine& moe_wgrad_sm90_engine();
const CudaEngine& pointwise_engine();
const CudaEngine& pointwise_tiled_engine();
const CudaEngine& reduction_engine();
const CudaEngine& resample_engine();
const CudaEngine& rope_engine();
const CudaEngine& row_norm_engine();
const CudaEngine& scatter_engine();

// In the table only where cublaslt() found the library.
const Engine& cublaslt_engine();

// Runs a CPU engine for the GPU.
std::unique_ptr<Engine> make_host_engine(const Engine& last_resort);
// Throws Error(internal) if a computation of a host engine for the device has failed since the last
// call. It ran in stream order, so the failure reaches the first caller that waits for the device
// or runs such an engine on it again.
void rethrow_host_failure(DeviceOrdinal device);

}  // namespace ashlar::cuda
