// The labels of the two parameter packs: the value type of each label and the fused ops that use
// it.
#pragma once

#include <cudnn.h>

namespace ashlar::cudnn {

enum class ConstantKind { tensor, filter, convolution, activation, bn_mode, placeholder };

struct ConstantLabel {
  cudnnFusedOpsConstParamLabel_t label;
  const char* name;
  ConstantKind kind;
  unsigned fusions;  // bit f: fused op f uses it
};
struct VariantLabel {
  cudnnFusedOpsVariantParamLabel_t label;
  const char* name;
  const char* tensor;  // name in the graph; null for the workspace and its size
  unsigned fusions;
};

// Throw Failure(BAD_PARAM) for a label that the fused op does not use.
const ConstantLabel& find_label(cudnnFusedOpsConstParamLabel_t label, cudnnFusedOps_t ops);
const VariantLabel& find_label(cudnnFusedOpsVariantParamLabel_t label, cudnnFusedOps_t ops);
// "CUDNN_PARAM_XDESC"
const char* name_of(cudnnFusedOpsConstParamLabel_t label);
// The label of the pointer that is bound to a tensor of the graph; null when there is none.
const VariantLabel* find_label_of(const char* tensor);

}  // namespace ashlar::cudnn
