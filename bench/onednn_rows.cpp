// Norms, softmax, pointwise operations, reductions and pooling as oneDNN primitives.
#include "onednn_translation.hpp"

namespace ashlar::bench {

namespace {

const auto kScaleAndShift =
    dnnl::normalization_flags::use_scale | dnnl::normalization_flags::use_shift;

// These primitives keep the layout of their input; inside a network of blocked layouts that is
// nChw16c.
Descriptor image(const Translation& t, const Tensor& tensor) {
  const Descriptor given = descriptor_of(tensor);
  if (t.choice.formats == Formats::given) return given;
  if (t.choice.formats != Formats::own || tensor.dims.rank() != 4) t.refuse("another layout");
  return {given.dims(), given.data_type(), dnnl::memory::format_tag::aBcd16b};
}

dnnl::layer_normalization_forward::primitive_desc layer_norm(const Translation& t,
                                                             dnnl::prop_kind kind,
                                                             const Descriptor& x,
                                                             const Descriptor& statistics,
                                                             float epsilon) {
  return {{kind, x, statistics, epsilon, kScaleAndShift}, t.program.engine()};
}

dnnl::batch_normalization_forward::primitive_desc batch_norm(const Translation& t,
                                                             const Descriptor& x, float epsilon) {
  return {{dnnl::prop_kind::forward_training, x, epsilon, kScaleAndShift}, t.program.engine()};
}

// Statistics in oneDNN's shape: the leading axes of x.
Descriptor leading(const Descriptor& x) {
  dnnl::memory::dims dims = x.dims();
  dims.pop_back();
  if (dims.size() != 1) Translation::refuse("a layer norm of this rank");
  return {dims, dnnl::memory::data_type::f32, dnnl::memory::format_tag::a};
}

void batch_norm_training(const NormForward& op, const Translation& t) {
  using Op = NormForward;
  if (op.phase != NormPhase::training) t.refuse("batch norm with given statistics");
  const Descriptor wanted = image(t, t.in(Op::x));
  const auto chosen = batch_norm(t, wanted, static_cast<float>(op.epsilon));
  const dnnl::memory mean = t.write_flat(Op::out_mean);
  t.program.add(chosen, dnnl::batch_normalization_forward(chosen),
                {t.input(DNNL_ARG_SRC, Op::x, descriptor_of(t.in(Op::x)), wanted),
                 t.same(DNNL_ARG_SCALE, t.read_flat(Op::scale)),
                 t.same(DNNL_ARG_SHIFT, t.read_flat(Op::bias))},
                {{DNNL_ARG_DST, t.write(0), wanted},
                 t.same(DNNL_ARG_MEAN, mean),
                 t.same(DNNL_ARG_VARIANCE, t.program.scratch(mean.get_desc()))});
}

// oneDNN has no RMS norm. Its layer norm, which also computes a mean, is timed instead; its results
// cannot serve as a check.
void row_norm(const NormForward& op, const Translation& t) {
  using Op = NormForward;
  t.require_single();
  const bool rms = op.mode == NormMode::rms;
  const bool training = op.phase == NormPhase::training;
  if (rms) t.program.note("layer norm for RMS norm:");
  const dnnl::memory x = t.read(Op::x);
  const Descriptor statistics = leading(x.get_desc());
  const auto chosen = layer_norm(
      t, training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference,
      x.get_desc(), statistics, static_cast<float>(op.epsilon));
  const dnnl::memory scale = t.read_flat(Op::scale);
  std::vector<Program::Operand> outputs = {
      t.same(DNNL_ARG_DST, rms ? t.program.scratch(x.get_desc()) : t.write(0))};
  if (training) {
    outputs.push_back(t.same(
        DNNL_ARG_MEAN, rms ? t.program.scratch(statistics) : t.write(Op::out_mean, statistics)));
    outputs.push_back(t.same(DNNL_ARG_VARIANCE, t.program.scratch(statistics)));
  }
  t.program.add(chosen, dnnl::layer_normalization_forward(chosen),
                {t.same(DNNL_ARG_SRC, x), t.same(DNNL_ARG_SCALE, scale),
                 t.same(DNNL_ARG_SHIFT, t.has_in(Op::bias) ? t.read_flat(Op::bias) : scale)},
                outputs);
}

// oneDNN reads the variance, our graphs 1 / sqrt(variance + epsilon). The conversion is not timed.
dnnl::memory variance_from(const dnnl::memory& inverse, double epsilon, const Translation& t) {
  const dnnl::memory variance = t.program.scratch(inverse.get_desc());
  const auto* from = static_cast<const float*>(inverse.get_data_handle());
  auto* to = static_cast<float*>(variance.get_data_handle());
  for (std::int64_t i = 0; i < inverse.get_desc().dims()[0]; ++i)
    to[i] = static_cast<float>(1.0 / (double{from[i]} * double{from[i]}) - epsilon);
  return variance;
}

void softmax(const SoftmaxAttributes& op, const dnnl::memory& x, const dnnl::memory& y,
             const Translation& t) {
  const int rank = static_cast<int>(x.get_desc().dims().size());
  const dnnl::softmax_v2_forward::primitive_desc chosen(
      {dnnl::prop_kind::forward_inference,
       op.log ? dnnl::algorithm::softmax_log : dnnl::algorithm::softmax_accurate, x.get_desc(),
       y.get_desc(), static_cast<int>(op.axis < 0 ? op.axis + rank : op.axis)},
      t.program.engine());
  t.program.add(chosen, dnnl::softmax_v2_forward(chosen), {t.same(DNNL_ARG_SRC, x)},
                {t.same(DNNL_ARG_DST, y)});
}

void binary(dnnl::algorithm algorithm, const Translation& t) {
  const dnnl::memory a = t.read(Pointwise::x), b = t.read(Pointwise::b), y = t.write(0);
  const dnnl::binary::primitive_desc chosen({algorithm, a.get_desc(), b.get_desc(), y.get_desc()},
                                            t.program.engine());
  t.program.add(chosen, dnnl::binary(chosen),
                {t.same(DNNL_ARG_SRC_0, a), t.same(DNNL_ARG_SRC_1, b)}, {t.same(DNNL_ARG_DST, y)});
}

}  // namespace

void translate(const NormForward& op, const Translation& t) {
  t.require_variants(1);
  t.require_alone();
  switch (op.mode) {
    case NormMode::batch: return batch_norm_training(op, t);
    case NormMode::layer:
    case NormMode::rms: return row_norm(op, t);
    default: t.refuse("this norm");
  }
}

void translate(const NormBackward& op, const Translation& t) {
  using Op = NormBackward;
  t.require_variants(1);
  t.require_alone();
  if (op.mode != NormMode::batch && op.mode != NormMode::layer) t.refuse("this norm");
  const Descriptor wanted = image(t, t.in(Op::x));
  const Descriptor given = descriptor_of(t.in(Op::x));
  const dnnl::memory mean = t.read_flat(Op::mean);
  const std::vector<Program::Operand> inputs = {
      t.input(DNNL_ARG_SRC, Op::x, given, wanted),
      t.input(DNNL_ARG_DIFF_DST, Op::dy, given, wanted), t.same(DNNL_ARG_MEAN, mean),
      t.same(DNNL_ARG_VARIANCE, variance_from(t.read_flat(Op::inv_variance), op.epsilon, t)),
      t.same(DNNL_ARG_SCALE, t.read_flat(Op::scale)),
      // Required by the primitive, but the gradients do not depend on the shift.
      t.same(DNNL_ARG_SHIFT, t.read_flat(Op::scale))};
  const std::vector<Program::Operand> outputs = {
      {DNNL_ARG_DIFF_SRC, t.write(0), wanted},
      t.same(DNNL_ARG_DIFF_SCALE, t.write_flat(Op::dscale)),
      t.same(DNNL_ARG_DIFF_SHIFT, t.write_flat(Op::dbias))};
  const auto epsilon = static_cast<float>(op.epsilon);
  if (op.mode == NormMode::batch) {
    const dnnl::batch_normalization_backward::primitive_desc chosen(
        {dnnl::prop_kind::backward, wanted, wanted, epsilon, kScaleAndShift}, t.program.engine(),
        batch_norm(t, wanted, epsilon));
    t.program.add(chosen, dnnl::batch_normalization_backward(chosen), inputs, outputs);
  } else {
    const dnnl::layer_normalization_backward::primitive_desc chosen(
        {dnnl::prop_kind::backward, wanted, wanted, mean.get_desc(), epsilon, kScaleAndShift},
        t.program.engine(),
        layer_norm(t, dnnl::prop_kind::forward_training, wanted, mean.get_desc(), epsilon));
    t.program.add(chosen, dnnl::layer_normalization_backward(chosen), inputs, outputs);
  }
}

void translate(const SoftmaxForward& op, const Translation& t) {
  t.require_single();
  softmax(op, t.read(SoftmaxForward::x), t.write(0), t);
}

void translate(const SoftmaxBackward& op, const Translation& t) {
  using Op = SoftmaxBackward;
  t.require_single();
  const dnnl::memory y = t.read(Op::y), dy = t.read(Op::dy), dx = t.write(0);
  const int rank = t.in(Op::y).dims.rank();
  const int axis = static_cast<int>(op.axis < 0 ? op.axis + rank : op.axis);
  const auto algorithm = op.log ? dnnl::algorithm::softmax_log : dnnl::algorithm::softmax_accurate;
  const dnnl::softmax_v2_forward::primitive_desc hint(
      {dnnl::prop_kind::forward_training, algorithm, y.get_desc(), y.get_desc(), axis},
      t.program.engine());
  const dnnl::softmax_v2_backward::primitive_desc chosen(
      {algorithm, dx.get_desc(), dy.get_desc(), y.get_desc(), axis}, t.program.engine(), hint);
  t.program.add(chosen, dnnl::softmax_v2_backward(chosen),
                {t.same(DNNL_ARG_DST, y), t.same(DNNL_ARG_DIFF_DST, dy)},
                {t.same(DNNL_ARG_DIFF_SRC, dx)});
}

void translate(const Pointwise& op, const Translation& t) {
  t.require_single();
  switch (op.mode) {
    case PointwiseMode::identity: return t.program.add_reorder(t.read(Pointwise::x), t.write(0));
    case PointwiseMode::add: return binary(dnnl::algorithm::binary_add, t);
    case PointwiseMode::mul: return binary(dnnl::algorithm::binary_mul, t);
    default: break;
  }
  const Eltwise eltwise = eltwise_of(op);
  const dnnl::memory x = t.read(Pointwise::x);
  const dnnl::eltwise_forward::primitive_desc chosen(
      {dnnl::prop_kind::forward_inference, eltwise.algorithm, x.get_desc(), eltwise.alpha},
      t.program.engine());
  t.program.add(chosen, dnnl::eltwise_forward(chosen), {t.same(DNNL_ARG_SRC, x)},
                {t.same(DNNL_ARG_DST, t.write(0))});
}

void translate(const Reduction& op, const Translation& t) {
  t.require_single();
  if (op.mode != ReductionMode::add) t.refuse("this reduction mode");
  const dnnl::memory x = t.read(Reduction::x), y = t.write(0);
  const dnnl::reduction::primitive_desc chosen(
      {dnnl::algorithm::reduction_sum, x.get_desc(), y.get_desc(), 0, 0}, t.program.engine());
  t.program.add(chosen, dnnl::reduction(chosen), {t.same(DNNL_ARG_SRC, x)},
                {t.same(DNNL_ARG_DST, y)});
}

void translate(const ResampleForward& op, const Translation& t) {
  using Op = ResampleForward;
  t.require_variants(1);
  t.require_alone();
  dnnl::algorithm algorithm{};
  switch (op.mode) {
    case ResampleMode::maxpool: algorithm = dnnl::algorithm::pooling_max; break;
    case ResampleMode::avgpool_include_padding:
      algorithm = dnnl::algorithm::pooling_avg_include_padding;
      break;
    case ResampleMode::avgpool_exclude_padding:
      algorithm = dnnl::algorithm::pooling_avg_exclude_padding;
      break;
    default: t.refuse("this resampling");
  }
  const bool training = t.has_out(Op::index);
  const int spatial = op.window.rank();
  const auto or_filled = [&](const Dims& dims, const Dims& other) {
    return dnnl_dims(dims.empty() ? other : dims);
  };
  const Dims zeros = Dims::filled(spatial, 0);
  const Descriptor x = image(t, t.in(Op::x)), y = image(t, t.out(0));
  const dnnl::pooling_v2_forward::primitive_desc chosen(
      {training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference, algorithm,
       x, y, or_filled(op.stride, op.window), dnnl_dims(op.window), dnnl_dims(zeros),
       or_filled(op.padding, zeros), or_filled(op.post_padding.value_or(op.padding), zeros)},
      t.program.engine());
  std::vector<Program::Operand> outputs = {{DNNL_ARG_DST, t.write(0), y}};
  if (training)
    outputs.push_back(t.same(DNNL_ARG_WORKSPACE, t.program.scratch(chosen.workspace_desc())));
  t.program.add(chosen, dnnl::pooling_v2_forward(chosen),
                {t.input(DNNL_ARG_SRC, Op::x, descriptor_of(t.in(Op::x)), x)}, outputs);
}

}  // namespace ashlar::bench
