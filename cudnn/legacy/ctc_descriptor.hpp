// cudnnCTCLossDescriptor_t.
#pragma once

#include <cudnn.h>

struct cudnnCTCLossStruct {
  static constexpr const char* kTypeName = "cudnnCTCLossDescriptor_t";
  bool is_set = false;
  cudnnDataType_t compute = CUDNN_DATA_FLOAT;  // also the type of the costs
  cudnnLossNormalizationMode_t normalization = CUDNN_LOSS_NORMALIZATION_NONE;
  // The gradient of a sequence that is too short for its labels: 0, or not written.
  cudnnCTCGradMode_t too_short = CUDNN_CTC_ZERO_OOB_GRADIENTS;
  int max_label_length = 0;  // 0: unknown
};
