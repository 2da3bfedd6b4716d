// The labels of the two parameter packs: what each takes, and in which fusions it occurs.
#pragma once

#include <cudnn.h>

namespace ashlar::cudnn {

enum class ConstantKind { tensor, filter, convolution, activation, bn_mode, placeholder };

struct ConstantLabel {
  cudnnFusedOpsConstParamLabel_t label;
  const char* name;
  ConstantKind kind;
  unsigned fusions;  // bit f: fusion f takes it
};
struct VariantLabel {
  cudnnFusedOpsVariantParamLabel_t label;
  const char* name;
  const char* tensor;  // of the graph; null for the workspace and its size
  unsigned fusions;
};

// Throw Failure(BAD_PARAM) for a label the fusion does not take.
const ConstantLabel& find_label(cudnnFusedOpsConstParamLabel_t label, cudnnFusedOps_t ops);
const VariantLabel& find_label(cudnnFusedOpsVariantParamLabel_t label, cudnnFusedOps_t ops);
// "CUDNN_PARAM_XDESC"
const char* name_of(cudnnFusedOpsConstParamLabel_t label);
// The label of the pointer that becomes a tensor of the graph; null when none does.
const VariantLabel* find_label_of(const char* tensor);

}  // namespace ashlar::cudnn
