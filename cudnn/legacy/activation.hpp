// cudnnActivationDescriptor_t, and activations as graph nodes.
#pragma once

#include <cudnn.h>

#include "core/tensor_spec.hpp"

struct cudnnActivationStruct {
  static constexpr const char* kTypeName = "cudnnActivationDescriptor_t";
  bool is_set = false;
  cudnnActivationMode_t mode = CUDNN_ACTIVATION_IDENTITY;
  cudnnNanPropagation_t nan = CUDNN_NOT_PROPAGATE_NAN;
  double coefficient = 0.0;  // the ceiling of CLIPPED_RELU, the alpha of ELU
  double swish_beta = 1.0;
};

namespace ashlar::cudnn {

using Activation = cudnnActivationStruct;

// The fields of a descriptor; throws Failure(BAD_PARAM) for one that was never set.
Activation activation_of(cudnnActivationDescriptor_t descriptor, const char* parameter);
void add_to_key(PlanKey& key, const Activation& activation);

// f(x), computed and stored in `type`.
Value activated(Graph& graph, const Activation& activation, Value x, DType type);
// dy * f'(x), with y = f(x). SIGMOID, TANH and ELU read y, so that y may overwrite x; the other
// modes read x. Pass an empty Value for the one that is not read.
Value activation_gradient(Graph& graph, const Activation& activation, Value y, Value dy, Value x,
                          DType type);
bool gradient_reads_x(const Activation& activation);
bool gradient_reads_y(const Activation& activation);

}  // namespace ashlar::cudnn
