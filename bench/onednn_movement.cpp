// Data movement (transpose, concat, slice) as oneDNN reorders and concat.
#include "onednn_translation.hpp"

namespace ashlar::bench {

void translate(const Transpose& op, const Translation& t) {
  t.require_single();
  const Tensor& x = t.in(Transpose::x);
  Tensor seen = x;
  for (int axis = 0; axis < x.dims.rank(); ++axis) {
    const int from = static_cast<int>(op.permutation[axis]);
    seen.dims[axis] = x.dims[from];
    seen.strides[axis] = x.strides[from];
  }
  t.program.add_reorder(t.read(Transpose::x, descriptor_of(seen)), t.write(0));
}

void translate(const Concat& op, const Translation& t) {
  t.require_single();
  std::vector<Descriptor> sources;
  std::vector<Program::Operand> inputs;
  for (std::size_t i = 0; i < t.node.inputs.size(); ++i) {
    const dnnl::memory memory = t.read(static_cast<int>(i));
    sources.push_back(memory.get_desc());
    inputs.push_back(t.same(DNNL_ARG_MULTIPLE_SRC + static_cast<int>(i), memory));
  }
  const dnnl::memory y = t.write(0);
  const int rank = t.out(0).dims.rank();
  const dnnl::concat::primitive_desc chosen(
      y.get_desc(), static_cast<int>(op.axis < 0 ? op.axis + rank : op.axis), sources,
      t.program.engine());
  t.program.add(chosen, dnnl::concat(chosen), inputs, {t.same(DNNL_ARG_DST, y)});
}

void translate(const Slice& op, const Translation& t) {
  t.require_single();
  for (const std::int64_t step : op.step)
    if (step != 1) t.refuse("a strided slice");
  const Tensor& x = t.in(Slice::x);
  const Descriptor window =
      descriptor_of(x).submemory_desc(dnnl_dims(t.out(0).dims), dnnl_dims(op.start));
  t.program.add_reorder(t.read(Slice::x, window), t.write(0));
}

}  // namespace ashlar::bench
