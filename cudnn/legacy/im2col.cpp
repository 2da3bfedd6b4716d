// The windows of a convolution as the columns of a matrix.
#include "legacy/call.hpp"
#include "legacy/convolution_descriptor.hpp"
#include "legacy/filter_descriptor.hpp"
#include "legacy/tensor_descriptor.hpp"

using namespace ashlar::cudnn;
using ashlar::Dims;
using ashlar::Graph;
using ashlar::Value;

namespace {

// [images, channels * elements, windows] with the elements of each window from the last to the
// first.
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

// The matrix has a row per channel and element of the window, which a true convolution counts from
// the last to the first, and a column per image and place of the window, without gaps.
cudnnStatus_t cudnnIm2Col(cudnnHandle_t handle, cudnnTensorDescriptor_t x_desc, const void* x,
                          cudnnFilterDescriptor_t w_desc, cudnnConvolutionDescriptor_t conv_desc,
                          void* columns) {
  return guarded_legacy(__func__, [&] {
    const auto& conv = convolution_of(conv_desc, "convDesc");
    const TensorSpec from = spec_of(x_desc, "srcDesc"), filter = spec_of(w_desc, "filterDesc");
    // Groups share the matrix: only the window of the filter matters.
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
      ashlar::Result packed;
      packed.layout = ashlar::row_major;
      graph.output("columns", graph.transpose(patches, {1, 0, 2}), packed);
    });
    call.bind("x", required(x, "srcData")).bind("columns", required(columns, "colBuffer")).run();
  });
}
