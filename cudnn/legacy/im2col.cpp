// The windows of a convolution as the rows of a matrix.
#include "legacy/call.hpp"
#include "legacy/convolution_descriptor.hpp"
#include "legacy/filter_descriptor.hpp"
#include "legacy/tensor_descriptor.hpp"

using namespace ashlar::cudnn;
using ashlar::Dims;
using ashlar::Graph;

// The matrix has a row per image and place of the window and a column per channel and element of
// the window, without gaps.
cudnnStatus_t cudnnIm2Col(cudnnHandle_t handle, cudnnTensorDescriptor_t x_desc, const void* x,
                          cudnnFilterDescriptor_t w_desc, cudnnConvolutionDescriptor_t conv_desc,
                          void* columns) {
  return answer_older(__func__, [&] {
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
    call.key(windows.stride).key(windows.dilation);
    call.compile([&](Graph& graph) {
      const auto patches = graph.apply(windows, {{ashlar::Im2Col::x, add_input(graph, "x", from)}},
                                       {ashlar::Im2Col::y})[ashlar::Im2Col::y];
      ashlar::Result packed;
      packed.layout = ashlar::row_major;
      graph.output("columns", graph.transpose(patches, {0, 2, 1}), packed);
    });
    call.bind("x", required(x, "srcData")).bind("columns", required(columns, "colBuffer")).run();
  });
}
