// cudnnLRNCrossChannel* (a window of channels) and cudnnDivisiveNormalization* (a window of
// pixels).
#include "legacy/call.hpp"
#include "legacy/graph_helpers.hpp"
#include "legacy/set_object.hpp"
#include "legacy/tensor_descriptor.hpp"

struct cudnnLRNStruct {
  static constexpr const char* kTypeName = "cudnnLRNDescriptor_t";
  ashlar::LocalNormAttributes attributes =
      {};  // also the values of a descriptor that was never set
};

using namespace ashlar::cudnn;
using ashlar::DivisiveNormBackward;
using ashlar::DivisiveNormForward;
using ashlar::DType;
using ashlar::Graph;
using ashlar::LocalNormAttributes;
using ashlar::LrnBackward;
using ashlar::LrnForward;
using ashlar::Value;

namespace {

LocalNormAttributes attributes_of(cudnnLRNDescriptor_t lrn) {
  return object(lrn, "normDesc").attributes;
}

template <class Op>
Op with(const LocalNormAttributes& attributes) {
  Op op;
  static_cast<LocalNormAttributes&>(op) = attributes;
  return op;
}

void add_norm_to_key(Call& call, const LocalNormAttributes& norm) {
  call.key(norm.window).key(norm.alpha).key(norm.beta).key(norm.k);
}

void require_spatial(const TensorSpec& x) {
  if (x.dims.rank() < 3)
    fail(CUDNN_STATUS_BAD_PARAM, "xDesc.nbDims: got {}, expected at least 3", x.dims.rank());
}

}  // namespace

cudnnStatus_t cudnnCreateLRNDescriptor(cudnnLRNDescriptor_t* lrn) {
  return guarded_legacy(__func__, [&] { create_object(lrn, "normDesc"); });
}

cudnnStatus_t cudnnSetLRNDescriptor(cudnnLRNDescriptor_t lrn, unsigned n, double alpha, double beta,
                                    double k) {
  return guarded_legacy(__func__, [&] {
    auto& descriptor = object(lrn, "normDesc");
    if (n < CUDNN_LRN_MIN_N || n > CUDNN_LRN_MAX_N)
      fail(CUDNN_STATUS_BAD_PARAM, "lrnN: got {}, expected {} to {}", n, CUDNN_LRN_MIN_N,
           CUDNN_LRN_MAX_N);
    if (!(k >= CUDNN_LRN_MIN_K))
      fail(CUDNN_STATUS_BAD_PARAM, "lrnK: got {}, expected at least {}", k, CUDNN_LRN_MIN_K);
    if (!(beta >= CUDNN_LRN_MIN_BETA))
      fail(CUDNN_STATUS_BAD_PARAM, "lrnBeta: got {}, expected at least {}", beta,
           CUDNN_LRN_MIN_BETA);
    descriptor.attributes = {n, alpha, beta, k};
  });
}

cudnnStatus_t cudnnGetLRNDescriptor(cudnnLRNDescriptor_t lrn, unsigned* n, double* alpha,
                                    double* beta, double* k) {
  return guarded_legacy(__func__, [&] {
    const LocalNormAttributes fields = attributes_of(lrn);
    *required(n, "lrnN") = static_cast<unsigned>(fields.window);
    *required(alpha, "lrnAlpha") = fields.alpha;
    *required(beta, "lrnBeta") = fields.beta;
    *required(k, "lrnK") = fields.k;
  });
}

cudnnStatus_t cudnnDestroyLRNDescriptor(cudnnLRNDescriptor_t lrn) {
  return guarded_legacy(__func__, [&] { destroy_object(lrn, "lrnDesc"); });
}

cudnnStatus_t cudnnLRNCrossChannelForward(cudnnHandle_t handle, cudnnLRNDescriptor_t lrn,
                                          cudnnLRNMode_t mode, const void* alpha,
                                          cudnnTensorDescriptor_t x_desc, const void* x,
                                          const void* beta, cudnnTensorDescriptor_t y_desc,
                                          void* y) {
  return guarded_legacy(__func__, [&] {
    Call call(handle, "lrn_forward");
    const LocalNormAttributes norm = attributes_of(lrn);
    require_enum(mode, CUDNN_LRN_CROSS_CHANNEL_DIM1, "lrnMode");
    const TensorSpec x_spec = spec_of(x_desc, "xDesc"), y_spec = spec_of(y_desc, "yDesc");
    require_same_dims(x_spec, "xDesc", y_spec, "yDesc");
    required(x, "x");
    required(y, "y");
    add_norm_to_key(call, norm);
    call.key(x_spec).key(y_spec).blend(alpha, beta, y_spec.dtype);
    call.compile([&](Graph& graph) {
      const auto results =
          graph.apply(with<LrnForward>(norm), {{LrnForward::x, add_input(graph, "x", x_spec)}},
                      {LrnForward::y}, in(compute_of(x_spec.dtype)));
      call.output(graph, "y", results[LrnForward::y], y_spec);
    });
    call.bind("x", x).bind("y", y).run();
  });
}

cudnnStatus_t cudnnLRNCrossChannelBackward(cudnnHandle_t handle, cudnnLRNDescriptor_t lrn,
                                           cudnnLRNMode_t mode, const void* alpha,
                                           cudnnTensorDescriptor_t y_desc, const void* y,
                                           cudnnTensorDescriptor_t dy_desc, const void* dy,
                                           cudnnTensorDescriptor_t x_desc, const void* x,
                                           const void* beta, cudnnTensorDescriptor_t dx_desc,
                                           void* dx) {
  return guarded_legacy(__func__, [&] {
    Call call(handle, "lrn_backward");
    const LocalNormAttributes norm = attributes_of(lrn);
    require_enum(mode, CUDNN_LRN_CROSS_CHANNEL_DIM1, "lrnMode");
    const TensorSpec dy_spec = spec_of(dy_desc, "dyDesc"), x_spec = spec_of(x_desc, "xDesc"),
                     dx_spec = spec_of(dx_desc, "dxDesc");
    require_same_dims(x_spec, "xDesc", spec_of(y_desc, "yDesc"), "yDesc");
    require_same_dims(x_spec, "xDesc", dy_spec, "dyDesc");
    require_same_dims(x_spec, "xDesc", dx_spec, "dxDesc");
    required(y, "y");
    required(dy, "dy");
    required(x, "x");
    required(dx, "dx");
    add_norm_to_key(call, norm);
    call.key(dy_spec).key(x_spec).key(dx_spec).blend(alpha, beta, dx_spec.dtype);
    call.compile([&](Graph& graph) {
      const auto results = graph.apply(with<LrnBackward>(norm),
                                       {{LrnBackward::x, add_input(graph, "x", x_spec)},
                                        {LrnBackward::dy, add_input(graph, "dy", dy_spec)}},
                                       {LrnBackward::dx}, in(compute_of(x_spec.dtype)));
      call.output(graph, "dx", results[LrnBackward::dx], dx_spec);
    });
    call.bind("x", x).bind("dy", dy).bind("dx", dx).run();
  });
}

cudnnStatus_t cudnnDivisiveNormalizationForward(cudnnHandle_t handle, cudnnLRNDescriptor_t lrn,
                                                cudnnDivNormMode_t mode, const void* alpha,
                                                cudnnTensorDescriptor_t x_desc, const void* x,
                                                const void* means, void* temp, void* temp2,
                                                const void* beta, cudnnTensorDescriptor_t y_desc,
                                                void* y) {
  return guarded_legacy(__func__, [&] {
    Call call(handle, "divisive_norm_forward");
    const LocalNormAttributes norm = attributes_of(lrn);
    require_enum(mode, CUDNN_DIVNORM_PRECOMPUTED_MEANS, "mode");
    const TensorSpec x_spec = spec_of(x_desc, "xDesc"), y_spec = spec_of(y_desc, "yDesc");
    require_same_dims(x_spec, "xDesc", y_spec, "yDesc");
    require_spatial(x_spec);
    required(x, "x");
    required(temp, "temp");
    required(temp2, "temp2");
    required(y, "y");
    const bool has_means = means != nullptr;
    add_norm_to_key(call, norm);
    call.key(x_spec).key(y_spec).key(has_means).blend(alpha, beta, y_spec.dtype);
    call.compile([&](Graph& graph) {
      const Value input = add_input(graph, "x", x_spec);
      const Value mean = has_means ? add_input(graph, "means", x_spec) : Value{};
      const auto results =
          graph.apply(with<DivisiveNormForward>(norm),
                      {{DivisiveNormForward::x, input}, {DivisiveNormForward::means, mean}},
                      {DivisiveNormForward::y}, in(compute_of(x_spec.dtype)));
      call.output(graph, "y", results[DivisiveNormForward::y], y_spec);
    });
    if (has_means) call.bind("means", means);
    call.bind("x", x).bind("y", y).run();
  });
}

// Without means, their gradient is that at means of 0.
cudnnStatus_t cudnnDivisiveNormalizationBackward(
    cudnnHandle_t handle, cudnnLRNDescriptor_t lrn, cudnnDivNormMode_t mode, const void* alpha,
    cudnnTensorDescriptor_t x_desc, const void* x, const void* means, const void* dy, void* temp,
    void* temp2, const void* beta, cudnnTensorDescriptor_t dx_desc, void* dx, void* dmeans) {
  return guarded_legacy(__func__, [&] {
    Call call(handle, "divisive_norm_backward");
    const LocalNormAttributes norm = attributes_of(lrn);
    require_enum(mode, CUDNN_DIVNORM_PRECOMPUTED_MEANS, "mode");
    const TensorSpec x_spec = spec_of(x_desc, "xDesc"), dx_spec = spec_of(dx_desc, "dXdMeansDesc");
    require_same_dims(x_spec, "xDesc", dx_spec, "dXdMeansDesc");
    require_spatial(x_spec);
    required(x, "x");
    required(dy, "dy");
    required(temp, "temp");
    required(temp2, "temp2");
    required(dx, "dx");
    const bool has_means = means != nullptr, wants_dmeans = dmeans != nullptr;
    add_norm_to_key(call, norm);
    call.key(x_spec).key(dx_spec).key(has_means).key(wants_dmeans);
    call.blend(alpha, beta, dx_spec.dtype);
    call.compile([&](Graph& graph) {
      using Op = DivisiveNormBackward;
      const DType type = compute_of(x_spec.dtype);
      const Value input = add_input(graph, "x", x_spec);
      const Value gradient = add_input(graph, "dy", x_spec);
      Value mean;
      if (has_means) mean = add_input(graph, "means", x_spec);
      if (!has_means && wants_dmeans)
        mean = filled_like(graph, input, constant_like(graph, 0.0, input, type), in(type));
      std::vector<ashlar::Wanted<Op>> wanted = {Op::dx};
      if (wants_dmeans) wanted.emplace_back(Op::dmeans, type);
      const auto results =
          graph.apply(with<Op>(norm), {{Op::x, input}, {Op::dy, gradient}, {Op::means, mean}},
                      wanted, in(type));
      call.output(graph, "dx", results[Op::dx], dx_spec);
      if (wants_dmeans) call.output(graph, "dmeans", results[Op::dmeans], dx_spec);
    });
    if (has_means) call.bind("means", means);
    if (wants_dmeans) call.bind("dmeans", dmeans);
    call.bind("x", x).bind("dy", dy).bind("dx", dx).run();
  });
}
