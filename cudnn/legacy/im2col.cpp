// cudnnIm2Col().
#include "legacy/call.hpp"
#include "legacy/convolution_descriptor.hpp"
#include "legacy/filter_descriptor.hpp"
#include "legacy/tensor_descriptor.hpp"

using namespace ashlar::cudnn;
using ashlar::Dims;
using ashlar::Graph;
using ashlar::Value;

namespace {

// Reverses the filter taps of [images, channels * taps, windows].
Value reversed(Graph& graph, Value patches, std::int64_t elements) {
  const Dims dims = patches.dims();
  const std::int64_t channels = elements > 0 ? dims[1] / elements : 0;
  const Value apart = graph.reshape(patches, {dims[0], channels, elements, dims[2]});
  std::vector<Value> parts;
  for (std::int64_t element = elements - 1; element >= 0; --element)
    parts.push_back(
        graph.slice(apart, {0, 0, element, 0}, {dims[0], channels, element + 1, dims[2]}));
  return graph.reshape(graph.concat(parts, 2), dims);
}

}  // namespace

// A row-major matrix with one row per channel and filter tap (taps reversed for CUDNN_CONVOLUTION)
// and one column per image and output pixel.
cudnnStatus_t cudnnIm2Col(cudnnHandle_t handle, cudnnTensorDescriptor_t x_desc, const void* x,
                          cudnnFilterDescriptor_t w_desc, cudnnConvolutionDescriptor_t conv_desc,
                          void* columns) {
  return guarded_legacy(__func__, [&] {
    const auto& conv = convolution_of(conv_desc, "convDesc");
    const TensorSpec from = spec_of(x_desc, "srcDesc"), filter = spec_of(w_desc, "filterDesc");
    // All groups share the matrix: of the filter, only its window matters.
    TensorSpec whole = filter;
    auto ungrouped = conv;
    ungrouped.groups = 1;
    whole.dims[1] = from.dims.rank() > 1 ? from.dims[1] : 1;
    forward_dims(ungrouped, from, "srcDesc", whole, "filterDesc");

    ashlar::Im2Col windows;
    for (int axis = 2; axis < filter.dims.rank(); ++axis)
      windows.window.push_back(filter.dims[axis]);
    windows.padding = conv.padding;
    windows.stride = conv.stride;
    windows.dilation = conv.dilation;
    Call call(handle, "im2col");
    call.key(from).key(windows.window).key(windows.padding);
    call.key(windows.stride).key(windows.dilation).key(conv.mode);
    call.compile([&](Graph& graph) {
      Value patches = graph.apply(windows, {{ashlar::Im2Col::x, add_input(graph, "x", from)}},
                                  {ashlar::Im2Col::y})[ashlar::Im2Col::y];
      const std::int64_t elements = element_count(windows.window);
      if (conv.mode == CUDNN_CONVOLUTION && elements > 1)
        patches = reversed(graph, patches, elements);
      ashlar::OutputSpec packed;
      packed.layout = ashlar::row_major;
      graph.output("columns", graph.transpose(patches, {1, 0, 2}), packed);
    });
    call.bind("x", required(x, "srcData")).bind("columns", required(columns, "colBuffer")).run();
  });
}
