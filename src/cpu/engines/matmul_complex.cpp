// Complex matmul as one real GEMM of twice the K and twice the N, whose operands are formed while
// packing.
#include <algorithm>

#include "cpu/engines/build.hpp"
#include "cpu/engines/engines.hpp"
#include "cpu/gemm/gemm.hpp"
#include "cpu/kernels/convert.hpp"
#include "cpu/operand.hpp"

namespace ashlar::cpu {

namespace {

DType part_of(DType dtype) { return dtype == complex_f32 ? f32 : f64; }

// C as an m x 2n real matrix (real and imaginary parts interleaved), A as m x 2k. Then B is 2k x
// 2n: rows 2l and 2l + 1 hold (re, im) and (-im, re) of B's row l.
GemmShape complex_shape(const Region& region) {
  const Dims& a = region.anchor->inputs[Matmul::a].dims;
  const Dims& c = region.anchor->outputs[Matmul::c].dims;
  const int rank = c.rank();
  GemmShape shape{.batch = 1, .m = c[rank - 2], .n = 2 * c[rank - 1], .k = 2 * a[rank - 1]};
  for (int axis = 0; axis < rank - 2; ++axis) shape.batch *= c[axis];
  return shape;
}

// A complex matrix in memory, addressed in parts: two per element.
template <class T>
struct ComplexMatrix {
  View view;
  Dims batches;  // of C
  LoadRow<T> load;
  StoreRow<T> store;

  ComplexMatrix(const View& matrix, const Dims& c)
      : view(matrix),
        load(load_row<T>(part_of(matrix.dtype))),
        store(store_row<T>(part_of(matrix.dtype))) {
    for (int axis = 0; axis < c.rank() - 2; ++axis) batches.push_back(c[axis]);
  }
  std::int64_t row_stride() const { return view.strides[view.dims.rank() - 2]; }
  std::int64_t column_stride() const { return view.strides[view.dims.rank() - 1]; }

  // The real part of element (row, column).
  std::int64_t part(std::int64_t batch, std::int64_t row, std::int64_t column) const {
    std::int64_t element = view.offset + row * row_stride() + column * column_stride();
    for (int axis = batches.rank() - 1; axis >= 0; --axis) {
      if (view.dims[axis] != 1) element += batch % batches[axis] * view.strides[axis];
      batch /= batches[axis];
    }
    return 2 * element;
  }
  bool same_for_all_batches() const {
    return std::all_of(view.dims.begin(), view.dims.end() - 2,
                       [](std::int64_t extent) { return extent == 1; });
  }
  // Loads `count` parts from index `start` of those along an axis, whose part 0 is at `origin` and
  // whose elements are `stride` apart. `turned`: multiplied by i, (-im, re).
  void load_parts(const void* data, std::int64_t origin, std::int64_t stride, std::int64_t start,
                  std::int64_t count, bool turned, T* destination) const {
    if (stride == 1 && !turned) return load(data, origin + start, 1, count, destination);
    for (std::int64_t first = 0; first < std::min<std::int64_t>(count, 2); ++first) {
      const bool imaginary = ((start + first) % 2 == 1) != turned;
      const std::int64_t numbers = (count - first + 1) / 2;
      const std::int64_t at = origin + (start + first) / 2 * 2 * stride + (imaginary ? 1 : 0);
      T values[kChunk];
      for (std::int64_t done = 0; done < numbers; done += kChunk) {
        const std::int64_t length = std::min(kChunk, numbers - done);
        load(data, at + done * 2 * stride, 2 * stride, length, values);
        const bool negated = turned && imaginary;
        for (std::int64_t i = 0; i < length; ++i)
          destination[first + 2 * (done + i)] = negated ? -values[i] : values[i];
      }
    }
  }

  static constexpr std::int64_t kChunk = 256;
};

template <class T>
class LeftOperand final : public GemmOperand<T> {
 public:
  LeftOperand(const ComplexMatrix<T>& matrix, const KernelContext& context)
      : matrix_(matrix), data_(context.pointer(matrix.view.tensor)) {}
  bool along_k() const override { return true; }
  bool same_for_all_batches() const override { return matrix_.same_for_all_batches(); }
  void row(std::int64_t batch, std::int64_t fixed, std::int64_t start, std::int64_t count,
           T* destination) const override {
    matrix_.load_parts(data_, matrix_.part(batch, fixed, 0), matrix_.column_stride(), start, count,
                       false, destination);
  }

 private:
  const ComplexMatrix<T>& matrix_;
  const void* data_;
};

template <class T>
class RightOperand final : public GemmOperand<T> {
 public:
  RightOperand(const ComplexMatrix<T>& matrix, const KernelContext& context)
      : matrix_(matrix), data_(context.pointer(matrix.view.tensor)) {}
  bool along_k() const override { return false; }
  bool same_for_all_batches() const override { return matrix_.same_for_all_batches(); }
  void row(std::int64_t batch, std::int64_t fixed, std::int64_t start, std::int64_t count,
           T* destination) const override {
    matrix_.load_parts(data_, matrix_.part(batch, fixed / 2, 0), matrix_.column_stride(), start,
                       count, fixed % 2 == 1, destination);
  }

 private:
  const ComplexMatrix<T>& matrix_;
  const void* data_;
};

template <class T>
class ComplexSink final : public GemmSink<T> {
 public:
  ComplexSink(const ComplexMatrix<T>& matrix, const KernelContext& context)
      : matrix_(matrix), data_(context.pointer(matrix.view.tensor)) {}
  void row(std::int64_t batch, std::int64_t m, std::int64_t n, std::int64_t count,
           T* values) const override {
    const std::int64_t origin = matrix_.part(batch, m, 0), stride = matrix_.column_stride();
    if (stride == 1) return matrix_.store(values, count, data_, origin + n, 1);
    for (std::int64_t i = 0; i < count; ++i)
      matrix_.store(values + i, 1, data_, origin + (n + i) / 2 * 2 * stride + (n + i) % 2, 1);
  }

 private:
  const ComplexMatrix<T>& matrix_;
  void* data_;
};

template <class T>
class ComplexMatmulKernel final : public Kernel {
 public:
  ComplexMatmulKernel(const Region& region, const Config& config)
      : shape_(complex_shape(region)),
        blocks_(GemmBlocks::from_knobs(config)),
        kernel_(gemm_kernel<T>()),
        a_(region.prologues[Matmul::a].steps[0].view, region.epilogue.space),
        b_(region.prologues[Matmul::b].steps[0].view, region.epilogue.space),
        c_(region.epilogue.stores[0].view, region.epilogue.space),
        scratch_(scratch_layout_.add("panels", gemm_scratch_bytes(shape_, blocks_, sizeof(T)))) {}

  void run(const KernelContext& context) const override {
    gemm<T>(shape_, blocks_, kernel_, LeftOperand<T>(a_, context), RightOperand<T>(b_, context),
            ComplexSink<T>(c_, context), context.scratch<T>(scratch_layout_, scratch_));
  }

 private:
  GemmShape shape_;
  GemmBlocks blocks_;
  GemmKernel<T> kernel_;
  ComplexMatrix<T> a_, b_, c_;
  int scratch_;
};

// f64 if a part or the compute type is f64.
DType precision_of(const Region& region) {
  const auto wide = [](const View& view) { return view.dtype == complex_f64; };
  const auto& anchor = *region.anchor;
  return needs_f64(anchor.compute) || wide(anchor.inputs[Matmul::a]) ||
                 wide(anchor.inputs[Matmul::b])
             ? f64
             : f32;
}

class MatmulComplexEngine final : public Engine {
 public:
  std::string_view id() const override { return "cpu.matmul_complex"; }
  EngineKind kind() const override { return EngineKind::precompiled_single; }
  std::string_view description() const override { return "complex matmul as one packed real GEMM"; }

  Support supports(const Region& region, const DeviceProps&) const override {
    if (!region.anchor_as<Matmul>()) return Support::other_operation("the anchor is not a matmul");
    const auto& inputs = region.anchor->inputs;
    if (!is_complex(inputs[Matmul::a].dtype)) return Support::no("real operands");
    for (const int slot : {Matmul::m_override, Matmul::n_override, Matmul::k_override})
      if (static_cast<std::size_t>(slot) < inputs.size() &&
          inputs[static_cast<std::size_t>(slot)].present())
        return Support::no("per-batch M, N or K overrides");
    if (!region.prologues[Matmul::a].is_plain_load() ||
        !region.prologues[Matmul::b].is_plain_load() || !region.epilogue.is_plain_store())
      return Support::no("a fused prologue or epilogue on complex operands");
    if (touches_ragged(region)) return Support::no("a tensor is ragged");
    return Support::yes();
  }

  std::vector<Config> configs(const Region& region, const DeviceProps& device) const override {
    Cost extra;
    extra.bytes = region.bytes();
    const GemmShape shape = complex_shape(region);
    return gemm_configs({&shape, 1}, device, precision_of(region), extra, true);
  }

  std::unique_ptr<Kernel> build(const Graph&, const Region& region, const Config& config,
                                const DeviceProps&) const override {
    if (precision_of(region) == f64)
      return std::make_unique<ComplexMatmulKernel<double>>(region, config);
    return std::make_unique<ComplexMatmulKernel<float>>(region, config);
  }
};

}  // namespace

const Engine& matmul_complex_engine() {
  static const MatmulComplexEngine engine;
  return engine;
}

}  // namespace ashlar::cpu
