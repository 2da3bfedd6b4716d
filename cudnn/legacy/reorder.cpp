#include "legacy/reorder.hpp"

#include "legacy/call.hpp"
#include "legacy/filter_descriptor.hpp"
#include "legacy/set_object.hpp"
#include "legacy/tensor_descriptor.hpp"

namespace ashlar::cudnn {

namespace {

constexpr std::int64_t kVector = 32;

std::int64_t window_elements(const TensorSpec& filter) {
  return element_count(filter.dims) / (filter.dims[0] * filter.dims[1]);
}

Dims filter_after(const TensorSpec& filter) {
  return {filter.dims[1] / kVector, window_elements(filter), filter.dims[0] / 8, 2, 8, 4, 4};
}

Value reordered_filter(Graph& graph, const TensorSpec& filter) {
  const Dims before = {filter.dims[0] / 8,      4, 2, filter.dims[1] / kVector,
                       window_elements(filter), 8, 4};
  return graph.transpose(graph.input("from", before, filter.dtype), {3, 4, 0, 2, 5, 1, 6});
}

Value reordered_bias(Graph& graph, std::int64_t channels) {
  const Value before = graph.input("from", {channels / kVector, 4, 2, 4}, f32);
  return graph.transpose(before, {0, 2, 1, 3});
}

}  // namespace

bool is_reorderable(const TensorSpec& filter) {
  return filter.vector == kVector && filter.dims[0] % kVector == 0;
}

Value add_reordered_filter(Graph& graph, std::string name, const TensorSpec& filter) {
  const Value after = graph.input(std::move(name), filter_after(filter), filter.dtype);
  return graph.reshape(graph.transpose(after, {2, 5, 3, 0, 4, 6, 1}), filter.dims);
}

Value add_reordered_bias(Graph& graph, std::string name, DType dtype, std::int64_t channels,
                         int rank) {
  const Value after = graph.input(std::move(name), {channels / kVector, 2, 4, 4}, dtype);
  Dims dims = Dims::filled(rank, 1);
  dims[1] = channels;
  return graph.reshape(graph.transpose(after, {0, 2, 1, 3}), dims);
}

}  // namespace ashlar::cudnn

using namespace ashlar::cudnn;
using ashlar::Graph;

cudnnStatus_t cudnnReorderFilterAndBias(cudnnHandle_t handle, cudnnFilterDescriptor_t filter_desc,
                                        cudnnReorderType_t reordering, const void* filter,
                                        void* reordered, int with_bias, const void* bias,
                                        void* reordered_bias_data) {
  return guarded_legacy(__func__, [&] {
    const TensorSpec spec = spec_of(filter_desc, "filterDesc");
    require_enum(reordering, CUDNN_NO_REORDER, "reorderType");
    // Other filters are copied unchanged.
    const bool moves = reordering == CUDNN_DEFAULT_REORDER && is_reorderable(spec);
    const auto run = [&](const char* name, const void* from, void* to, const auto& build) {
      Call call(handle, name);
      call.key(spec).key(moves);
      call.compile([&](Graph& graph) {
        ashlar::OutputSpec packed;
        packed.layout = ashlar::row_major;
        graph.output("to", ashlar::pointwise(ashlar::PointwiseMode::identity, build(graph)),
                     packed);
      });
      call.bind("from", from).bind("to", to).run();
    };
    run("reorder_filter", required(filter, "filterData"),
        required(reordered, "reorderedFilterData"), [&](Graph& graph) {
          return moves ? reordered_filter(graph, spec)
                       : graph.input("from", {element_count(spec.dims)}, spec.dtype);
        });
    if (with_bias == 0) return;
    run("reorder_bias", required(bias, "biasData"),
        required(reordered_bias_data, "reorderedBiasData"), [&](Graph& graph) {
          return moves ? reordered_bias(graph, spec.dims[0])
                       : graph.input("from", {spec.dims[0]}, ashlar::f32);
        });
  });
}
