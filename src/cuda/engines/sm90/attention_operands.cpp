#include "cuda/engines/sm90/attention_operands.hpp"

namespace ashlar::cuda {

namespace {
constexpr int kBatch = 0, kHead = 1, kRow = 2;
}

TensorMapForm attention_map(const View& view, std::int64_t columns, std::int64_t rows) {
  const auto axis = [&](int number, std::int64_t box) {
    return TensorMapAxis{.extent = view.dims[number], .stride = view.strides[number], .box = box};
  };
  TensorMapForm form{
      .dtype = view.dtype,
      .swizzle = static_cast<int>(2 * columns),
      .axes = {axis(kAttentionColumn, columns), axis(kRow, rows), axis(kHead, 1), axis(kBatch, 1)}};
  form.axes[0].stride = 1;
  return form;
}

const char* attention_refusal(const View& view) {
  if (!is_tma_aligned(view, kAttentionColumn))
    return "rows that are not contiguous or not 16-byte aligned";
  for (const int axis : {kBatch, kHead, kRow})
    if (view.dims[axis] > 1 && view.strides[axis] <= 0) return "a broadcast axis";
  return refusal(attention_map(view, 32, 64));
}

void add_attention_rows(Arguments& arguments, const std::string& name, const View& view,
                        int multiple) {
  std::array<std::int64_t, 3> strides{};
  if (view.present()) {
    arguments.pointer(name, view, multiple);
    strides = {view.strides[kBatch], view.strides[kHead], view.strides[kRow]};
  } else {
    arguments.number(name, 0);
  }
  arguments.numbers(name + "_strides", strides);
}

}  // namespace ashlar::cuda
