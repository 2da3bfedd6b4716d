// Convolutions and matmul as oneDNN primitives.
#include "onednn_translation.hpp"

namespace ashlar::bench {

namespace {

struct Conv {
  Descriptor x, w, y;
  dnnl::memory::dims stride, dilation, before, after;
};

// oneDNN's dilation is 0-based, and groups are a leading axis of the filter.
Conv geometry(const ConvAttributes& op, const Tensor& x, const Tensor& w, const Tensor& y) {
  const int spatial = x.dims.rank() - 2;
  const auto or_filled = [&](const Dims& dims, std::int64_t value) {
    return dims.empty() ? Dims::filled(spatial, value) : dims;
  };
  Conv conv{descriptor_of(x), descriptor_of(w), descriptor_of(y), {}, {}, {}, {}};
  if (const std::int64_t groups = x.dims[1] / w.dims[1]; groups > 1) {
    Tensor split = w;
    split.dims = {groups, w.dims[0] / groups};
    split.strides = {w.strides[0] * (w.dims[0] / groups), w.strides[0]};
    for (int axis = 1; axis < w.dims.rank(); ++axis) {
      split.dims.push_back(w.dims[axis]);
      split.strides.push_back(w.strides[axis]);
    }
    conv.w = descriptor_of(split);
  }
  conv.stride = dnnl_dims(or_filled(op.stride, 1));
  conv.dilation = dnnl_dims(or_filled(op.dilation, 1));
  for (auto& dilation : conv.dilation) --dilation;
  conv.before = dnnl_dims(or_filled(op.padding, 0));
  conv.after = dnnl_dims(or_filled(op.post_padding.value_or(op.padding), 0));
  return conv;
}

constexpr int kConvAlgorithms = 4;  // variants 4 to 7: the same with the residual added in place

dnnl::algorithm conv_algorithm(const Translation& t) {
  switch (t.choice.variant % kConvAlgorithms) {
    case 1: return dnnl::algorithm::convolution_winograd;
    case 2: return dnnl::algorithm::convolution_auto;
    case 3: return dnnl::algorithm::convolution_winograd;
    default: return dnnl::algorithm::convolution_direct;
  }
}

// oneDNN offers larger Winograd tiles only for training, which computes the same forward pass.
dnnl::prop_kind forward_kind(const Translation& t) {
  return t.choice.variant % kConvAlgorithms == 3 ? dnnl::prop_kind::forward_training
                                                 : dnnl::prop_kind::forward_inference;
}

// The forward primitive that backward primitives need as a hint.
dnnl::convolution_forward::primitive_desc hint(const Conv& conv, const Translation& t) {
  return {
      {dnnl::prop_kind::forward_training, conv_algorithm(t), t.activation(conv.x), t.filter(conv.w),
       t.activation(conv.y), conv.stride, conv.dilation, conv.before, conv.after},
      t.program.engine()};
}

Descriptor bias_descriptor(std::int64_t channels, dnnl::memory::data_type type) {
  return {{channels}, type, dnnl::memory::format_tag::a};
}

// The last two axes as a 2-D descriptor.
Descriptor last_axes(const Tensor& tensor, bool transposed) {
  Tensor flat = tensor;
  const int rank = tensor.dims.rank(), row = transposed ? rank - 1 : rank - 2,
            column = transposed ? rank - 2 : rank - 1;
  flat.dims = {tensor.dims[row], tensor.dims[column]};
  flat.strides = {tensor.strides[row], tensor.strides[column]};
  return descriptor_of(flat);
}

bool one_matrix(const Tensor& tensor) {
  for (int axis = 0; axis < tensor.dims.rank() - 2; ++axis)
    if (tensor.dims[axis] != 1) return false;
  return true;
}

void as_matmul(const Translation& t) {
  const Tensor &a = t.in(Matmul::a), &b = t.in(Matmul::b), &c = t.result();
  const int rank = c.dims.rank();
  const Epilogue epilogue = epilogue_of(t, rank - 1);
  std::vector<Program::Operand> inputs;
  Descriptor bias;
  if (epilogue.bias != kNoTensor) {
    bias = descriptor_of(t.graph.tensor(epilogue.bias));
    inputs.push_back(t.same(DNNL_ARG_BIAS, t.program.bound(epilogue.bias, bias)));
  }
  const Descriptor weights = t.program.constant(t.in_id(Matmul::b))
                                 ? t.filter(descriptor_of(b))
                                 : t.activation(descriptor_of(b));
  const dnnl::matmul::primitive_desc chosen(
      {t.activation(descriptor_of(a)), weights, bias, t.activation(descriptor_of(c))},
      epilogue.attributes, t.program.engine());
  inputs.push_back(t.input(DNNL_ARG_SRC, Matmul::a, descriptor_of(a), chosen.src_desc()));
  inputs.push_back(t.input(DNNL_ARG_WEIGHTS, Matmul::b, descriptor_of(b), chosen.weights_desc()));
  for (auto& extra : extra_operands(t, epilogue, chosen)) inputs.push_back(std::move(extra));
  t.program.add(chosen, dnnl::matmul(chosen), inputs,
                {{DNNL_ARG_DST, t.write_result(), chosen.dst_desc()}});
}

// The weights of an inner product are the transpose of b.
void as_inner_product(const Translation& t) {
  const Tensor &a = t.in(Matmul::a), &b = t.in(Matmul::b), &c = t.result();
  if (!one_matrix(a) || !one_matrix(b)) t.refuse("a batched inner product");
  const Epilogue epilogue = epilogue_of(t, c.dims.rank() - 1);
  if (!epilogue.extras.empty()) t.refuse("an inner product with a binary post-op");
  const Descriptor x = last_axes(a, false), w = last_axes(b, true), y = last_axes(c, false);
  std::vector<Program::Operand> inputs;
  Descriptor bias;
  if (epilogue.bias != kNoTensor) {
    bias = bias_descriptor(y.dims()[1], y.data_type());
    inputs.push_back(t.same(DNNL_ARG_BIAS, t.program.bound(epilogue.bias, bias)));
  }
  const dnnl::inner_product_forward::primitive_desc chosen(
      {dnnl::prop_kind::forward_inference, t.activation(x), t.filter(w), bias, t.activation(y)},
      epilogue.attributes, t.program.engine());
  inputs.push_back(t.input(DNNL_ARG_SRC, Matmul::a, x, chosen.src_desc()));
  inputs.push_back(t.input(DNNL_ARG_WEIGHTS, Matmul::b, w, chosen.weights_desc()));
  const dnnl::memory result = t.program.bound(t.graph.nodes().back().outputs.front(), y);
  t.program.add(chosen, dnnl::inner_product_forward(chosen), inputs,
                {{DNNL_ARG_DST, result, chosen.dst_desc()}});
}

void as_sgemm(const Translation& t) {
  t.require_alone();
  if (t.choice.formats != Formats::given) t.refuse("sgemm on other layouts");
  const Tensor &a = t.in(Matmul::a), &b = t.in(Matmul::b), &c = t.result();
  for (const Tensor* tensor : {&a, &b, &c})
    if (tensor->dtype != f32 || !one_matrix(*tensor) ||
        tensor->strides != row_major.strides_for(tensor->dims))
      t.refuse("sgemm on these tensors");
  const int rank = c.dims.rank();
  const std::int64_t m = c.dims[rank - 2], n = c.dims[rank - 1], k = a.dims[a.dims.rank() - 1];
  const dnnl::memory left = t.read(Matmul::a), right = t.read(Matmul::b), to = t.write_result();
  t.program.add_call("sgemm", [=] {
    dnnl::sgemm('N', 'N', m, n, k, 1, static_cast<const float*>(left.get_data_handle()), k,
                static_cast<const float*>(right.get_data_handle()), n, 0,
                static_cast<float*>(to.get_data_handle()), n);
  });
}

}  // namespace

void translate(const ConvForward& op, const Translation& t) {
  const Conv conv = geometry(op, t.in(ConvForward::x), t.in(ConvForward::w), t.result());
  t.require_variants(2 * kConvAlgorithms);
  const Epilogue epilogue = epilogue_of(t, 1, t.choice.variant >= kConvAlgorithms);
  std::vector<Program::Operand> inputs;
  Descriptor bias;
  if (epilogue.bias != kNoTensor) {
    bias = bias_descriptor(conv.y.dims()[1], dnnl::memory::data_type::f32);
    inputs.push_back(t.same(DNNL_ARG_BIAS, t.program.bound(epilogue.bias, bias)));
  }
  const dnnl::convolution_forward::primitive_desc chosen(
      {forward_kind(t), conv_algorithm(t), t.activation(conv.x), t.filter(conv.w), bias,
       t.activation(conv.y), conv.stride, conv.dilation, conv.before, conv.after},
      epilogue.attributes, t.program.engine());
  inputs.push_back(t.input(DNNL_ARG_SRC, ConvForward::x, conv.x, chosen.src_desc()));
  inputs.push_back(t.input(DNNL_ARG_WEIGHTS, ConvForward::w, conv.w, chosen.weights_desc()));
  for (auto& extra : extra_operands(t, epilogue, chosen)) inputs.push_back(std::move(extra));
  dnnl::memory addend;
  if (epilogue.addend != kNoTensor)
    addend = t.program.bound(epilogue.addend, descriptor_of(t.graph.tensor(epilogue.addend)));
  t.program.add(chosen, dnnl::convolution_forward(chosen), inputs,
                {{DNNL_ARG_DST, t.write_result(), chosen.dst_desc()}}, addend);
}

void translate(const ConvBackwardData& op, const Translation& t) {
  t.require_alone();
  t.require_variants(kConvAlgorithms);
  using Op = ConvBackwardData;
  const Conv conv = geometry(op, t.out(0), t.in(Op::w), t.in(Op::dy));
  const dnnl::convolution_backward_data::primitive_desc chosen(
      {conv_algorithm(t), t.activation(conv.x), t.filter(conv.w), t.activation(conv.y), conv.stride,
       conv.dilation, conv.before, conv.after},
      t.program.engine(), hint(conv, t));
  t.program.add(chosen, dnnl::convolution_backward_data(chosen),
                {t.input(DNNL_ARG_DIFF_DST, Op::dy, conv.y, chosen.diff_dst_desc()),
                 t.input(DNNL_ARG_WEIGHTS, Op::w, conv.w, chosen.weights_desc())},
                {{DNNL_ARG_DIFF_SRC, t.write(0), chosen.diff_src_desc()}});
}

void translate(const ConvBackwardFilter& op, const Translation& t) {
  t.require_alone();
  t.require_variants(kConvAlgorithms);
  using Op = ConvBackwardFilter;
  const Conv conv = geometry(op, t.in(Op::x), t.out(0), t.in(Op::dy));
  const dnnl::convolution_backward_weights::primitive_desc chosen(
      {conv_algorithm(t), t.activation(conv.x), t.filter(conv.w), t.activation(conv.y), conv.stride,
       conv.dilation, conv.before, conv.after},
      t.program.engine(), hint(conv, t));
  t.program.add(chosen, dnnl::convolution_backward_weights(chosen),
                {t.input(DNNL_ARG_SRC, Op::x, conv.x, chosen.src_desc()),
                 t.input(DNNL_ARG_DIFF_DST, Op::dy, conv.y, chosen.diff_dst_desc())},
                {{DNNL_ARG_DIFF_WEIGHTS, t.write(0, conv.w), chosen.diff_weights_desc()}});
}

void translate(const Matmul&, const Translation& t) {
  t.require_variants(3);
  switch (t.choice.variant) {
    case 1: return as_inner_product(t);
    case 2: return as_sgemm(t);
    default: return as_matmul(t);
  }
}

}  // namespace ashlar::bench
