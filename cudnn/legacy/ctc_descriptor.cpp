#include "legacy/ctc_descriptor.hpp"

#include "core/data_type.hpp"
#include "core/guarded.hpp"
#include "legacy/set_object.hpp"

namespace ashlar::cudnn {

namespace {

void set(cudnnCTCLossDescriptor_t ctc, cudnnDataType_t compute,
         cudnnLossNormalizationMode_t normalization, cudnnCTCGradMode_t too_short,
         int max_label_length) {
  cudnnCTCLossStruct& descriptor = object(ctc, "ctcLossDesc");
  const DType dtype = require_dtype(compute, "compType");
  if (dtype != f32 && dtype != f64)
    fail(CUDNN_STATUS_NOT_SUPPORTED, "compType: got {}, expected CUDNN_DATA_FLOAT or _DOUBLE",
         data_type_name(compute));
  require_enum(normalization, CUDNN_LOSS_NORMALIZATION_SOFTMAX, "normMode");
  require_enum(too_short, CUDNN_CTC_SKIP_OOB_GRADIENTS, "gradMode");
  if (max_label_length < 0)
    fail(CUDNN_STATUS_BAD_PARAM, "maxLabelLength: got {}, expected at least 0", max_label_length);
  descriptor = {true, compute, normalization, too_short, max_label_length};
}

// cudnnSetCTCLossDescriptorEx() encodes the gradient mode as a cudnnNanPropagation_t with the same
// values.
cudnnCTCGradMode_t mode_of(cudnnNanPropagation_t nan) {
  return static_cast<cudnnCTCGradMode_t>(static_cast<int>(nan));
}
cudnnNanPropagation_t nan_of(cudnnCTCGradMode_t mode) {
  return static_cast<cudnnNanPropagation_t>(static_cast<int>(mode));
}

const cudnnCTCLossStruct& fields(cudnnCTCLossDescriptor_t ctc) {
  return set_object(ctc, "ctcLossDesc");
}

template <class T>
void write_optional(T* out, T value) {
  if (out != nullptr) *out = value;
}

}  // namespace

}  // namespace ashlar::cudnn

using namespace ashlar::cudnn;

cudnnStatus_t cudnnCreateCTCLossDescriptor(cudnnCTCLossDescriptor_t* ctc) {
  return guarded_legacy(__func__, [&] { create_object(ctc, "ctcLossDesc"); });
}

cudnnStatus_t cudnnDestroyCTCLossDescriptor(cudnnCTCLossDescriptor_t ctc) {
  return guarded_legacy(__func__, [&] { destroy_object(ctc, "ctcLossDesc"); });
}

cudnnStatus_t cudnnSetCTCLossDescriptor(cudnnCTCLossDescriptor_t ctc, cudnnDataType_t compute) {
  return guarded_legacy(__func__, [&] {
    set(ctc, compute, CUDNN_LOSS_NORMALIZATION_NONE, CUDNN_CTC_ZERO_OOB_GRADIENTS, 0);
  });
}

cudnnStatus_t cudnnSetCTCLossDescriptorEx(cudnnCTCLossDescriptor_t ctc, cudnnDataType_t compute,
                                          cudnnLossNormalizationMode_t normalization,
                                          cudnnNanPropagation_t out_of_bounds) {
  return guarded_legacy(__func__,
                        [&] { set(ctc, compute, normalization, mode_of(out_of_bounds), 0); });
}

cudnnStatus_t cudnnSetCTCLossDescriptor_v8(cudnnCTCLossDescriptor_t ctc, cudnnDataType_t compute,
                                           cudnnLossNormalizationMode_t normalization,
                                           cudnnNanPropagation_t out_of_bounds,
                                           int max_label_length) {
  return guarded_legacy(__func__, [&] {
    set(ctc, compute, normalization, mode_of(out_of_bounds), max_label_length);
  });
}

cudnnStatus_t cudnnSetCTCLossDescriptor_v9(cudnnCTCLossDescriptor_t ctc, cudnnDataType_t compute,
                                           cudnnLossNormalizationMode_t normalization,
                                           cudnnCTCGradMode_t out_of_bounds, int max_label_length) {
  return guarded_legacy(__func__,
                        [&] { set(ctc, compute, normalization, out_of_bounds, max_label_length); });
}

cudnnStatus_t cudnnGetCTCLossDescriptor(cudnnCTCLossDescriptor_t ctc, cudnnDataType_t* compute) {
  return guarded_legacy(__func__, [&] { write_optional(compute, fields(ctc).compute); });
}

cudnnStatus_t cudnnGetCTCLossDescriptorEx(cudnnCTCLossDescriptor_t ctc, cudnnDataType_t* compute,
                                          cudnnLossNormalizationMode_t* normalization,
                                          cudnnNanPropagation_t* out_of_bounds) {
  return guarded_legacy(__func__, [&] {
    const cudnnCTCLossStruct& descriptor = fields(ctc);
    write_optional(compute, descriptor.compute);
    write_optional(normalization, descriptor.normalization);
    write_optional(out_of_bounds, nan_of(descriptor.too_short));
  });
}

cudnnStatus_t cudnnGetCTCLossDescriptor_v8(cudnnCTCLossDescriptor_t ctc, cudnnDataType_t* compute,
                                           cudnnLossNormalizationMode_t* normalization,
                                           cudnnNanPropagation_t* out_of_bounds,
                                           int* max_label_length) {
  return guarded_legacy(__func__, [&] {
    const cudnnCTCLossStruct& descriptor = fields(ctc);
    write_optional(compute, descriptor.compute);
    write_optional(normalization, descriptor.normalization);
    write_optional(out_of_bounds, nan_of(descriptor.too_short));
    write_optional(max_label_length, descriptor.max_label_length);
  });
}

cudnnStatus_t cudnnGetCTCLossDescriptor_v9(cudnnCTCLossDescriptor_t ctc, cudnnDataType_t* compute,
                                           cudnnLossNormalizationMode_t* normalization,
                                           cudnnCTCGradMode_t* out_of_bounds,
                                           int* max_label_length) {
  return guarded_legacy(__func__, [&] {
    const cudnnCTCLossStruct& descriptor = fields(ctc);
    write_optional(compute, descriptor.compute);
    write_optional(normalization, descriptor.normalization);
    write_optional(out_of_bounds, descriptor.too_short);
    write_optional(max_label_length, descriptor.max_label_length);
  });
}
