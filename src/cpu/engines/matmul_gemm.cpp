// Matrix products of any strides, with pointwise work fused before and after.
#include <algorithm>

#include "cpu/engines/build.hpp"
#include "cpu/engines/engines.hpp"
#include "cpu/engines/matmul_lengths.hpp"
#include "cpu/product.hpp"
#include "cpu/row_program.hpp"

namespace ashlar::cpu {

namespace {

// The flattened batch axes of C, and the coordinate each operand has there.
struct BatchAxes {
  Dims extents;  // of C

  // Operands have extent 1 where they are shared.
  void decode(std::int64_t batch, const Dims& operand, Coords& coords) const {
    for (int axis = extents.rank() - 1; axis >= 0; --axis) {
      const std::int64_t position = batch % extents[axis];
      batch /= extents[axis];
      coords[static_cast<std::size_t>(axis)] = operand[axis] == 1 ? 0 : position;
    }
  }
  MatmulLengths::Batch lengths(const MatmulLengths& lengths, const KernelContext& context,
                               std::int64_t batch) const {
    return lengths.of(context,
                      [&](const Dims& dims, Coords& coords) { decode(batch, dims, coords); });
  }
};

// The two matrix axes of C in the product's order: swapped (C^T = B^T A^T) when that makes C's rows
// contiguous, or wide enough for vectors.
struct Orientation {
  bool swapped;

  explicit Orientation(const PointwiseProgram& epilogue) {
    const int rank = epilogue.space.rank();
    const std::int64_t m = epilogue.space[rank - 2], n = epilogue.space[rank - 1];
    const int along_m = contiguous_views(epilogue, rank - 2),
              along_n = contiguous_views(epilogue, rank - 1);
    constexpr std::int64_t kNarrow = 16;
    swapped = (n < kNarrow && m > 2 * n) || (along_m > along_n && m >= kNarrow);
  }
};

GemmShape shape_of(const Region& region) {
  const Dims& a = region.anchor->inputs[Matmul::a].dims;
  const Dims& c = region.anchor->outputs[Matmul::c].dims;
  const int rank = c.rank();
  GemmShape shape{.batch = 1, .m = c[rank - 2], .n = c[rank - 1], .k = a[rank - 1]};
  for (int axis = 0; axis < rank - 2; ++axis) shape.batch *= c[axis];
  if (Orientation(region.epilogue).swapped) std::swap(shape.m, shape.n);
  return shape;
}

// A or B with the work fused into it, compiled for rows along its contiguous axis.
template <class T>
struct Matrix {
  RowProgram<T> program;
  Dims dims;
  int index_axis, depth_axis;
  bool along_depth;

  Matrix(const PointwiseProgram& source, int index, int depth)
      : dims(source.space), index_axis(index), depth_axis(depth) {
    along_depth = contiguous_views(source, depth) > contiguous_views(source, index) ||
                  (contiguous_views(source, index) == 0 && dims[depth] >= dims[index]);
    program = RowProgram<T>(source, along_depth ? depth : index);
  }
};

template <class T>
class MatrixOperand final : public GemmOperand<T> {
 public:
  MatrixOperand(const Matrix<T>& matrix, const BatchAxes& batch, const MatmulLengths& lengths,
                const KernelContext& context)
      : matrix_(matrix),
        batch_(batch),
        lengths_(lengths),
        context_(context),
        bound_(matrix.program.bind(context)) {}
  bool along_depth() const override { return matrix_.along_depth; }
  bool same_for_all_batches() const override {
    return !lengths_.cuts_depth() && std::all_of(matrix_.dims.begin(), matrix_.dims.end() - 2,
                                                 [](std::int64_t extent) { return extent == 1; });
  }
  void row(std::int64_t batch, std::int64_t fixed, std::int64_t start, std::int64_t count,
           T* destination) const override {
    if (lengths_.cuts_depth()) {  // zeros past this batch's k
      const std::int64_t k = batch_.lengths(lengths_, context_, batch).k;
      const std::int64_t terms =
          along_depth() ? std::clamp<std::int64_t>(k - start, 0, count) : (fixed < k ? count : 0);
      std::fill(destination + terms, destination + count, T{0});
      if ((count = terms) == 0) return;
    }
    Coords coords;
    batch_.decode(batch, matrix_.dims, coords);
    coords[static_cast<std::size_t>(matrix_.index_axis)] = along_depth() ? fixed : start;
    coords[static_cast<std::size_t>(matrix_.depth_axis)] = along_depth() ? start : fixed;
    bound_.load(coords.data(), count, destination);
  }

 private:
  const Matrix<T>& matrix_;
  const BatchAxes& batch_;
  const MatmulLengths& lengths_;
  const KernelContext& context_;
  typename RowProgram<T>::Bound bound_;
};

template <class T>
class MatrixSink final : public GemmSink<T> {
 public:
  MatrixSink(const RowProgram<T>& epilogue, const BatchAxes& batch, const MatmulLengths& lengths,
             const Dims& dims, bool swapped, const KernelContext& context)
      : batch_(batch),
        lengths_(lengths),
        dims_(dims),
        swapped_(swapped),
        context_(context),
        bound_(epilogue.bind(context)) {}
  void row(std::int64_t batch, std::int64_t m, std::int64_t n, std::int64_t count,
           T* values) const override {
    if (lengths_.cuts_result()) {  // past this batch's m and n stands padding
      const MatmulLengths::Batch own = batch_.lengths(lengths_, context_, batch);
      const bool inside = m < (swapped_ ? own.n : own.m);
      const std::int64_t end = swapped_ ? own.m : own.n;
      std::fill(values + (inside ? std::clamp<std::int64_t>(end - n, 0, count) : 0), values + count,
                static_cast<T>(lengths_.padding_value()));
    }
    Coords coords;
    batch_.decode(batch, dims_, coords);
    const auto rank = static_cast<std::size_t>(dims_.rank());
    coords[rank - 2] = swapped_ ? n : m;
    coords[rank - 1] = swapped_ ? m : n;
    bound_.store(coords.data(), count, values);
  }

 private:
  const BatchAxes& batch_;
  const MatmulLengths& lengths_;
  const Dims& dims_;
  bool swapped_;
  const KernelContext& context_;
  typename RowProgram<T>::Bound bound_;
};

template <class Product>
class MatmulKernel final : public Kernel {
  using Operand = typename Product::Operand;
  using Result = typename Product::Result;
  using Panel = typename Product::Panel;

 public:
  MatmulKernel(const Region& region, const Config& config)
      : shape_(shape_of(region)),
        blocks_(GemmBlocks::from_knobs(config)),
        kernel_(gemm_kernel<Panel>()),
        dims_(region.anchor->outputs[Matmul::c].dims),
        swapped_(Orientation(region.epilogue).swapped),
        lengths_(region),
        a_(region.prologues[Matmul::a], dims_.rank() - 2, dims_.rank() - 1),
        b_(region.prologues[Matmul::b], dims_.rank() - 1, dims_.rank() - 2),
        epilogue_(region.epilogue, swapped_ ? dims_.rank() - 2 : dims_.rank() - 1),
        scratch_(scratch_book_.add(
            "panels", gemm_scratch_bytes(Product::panels(shape_), blocks_, sizeof(Panel)))) {
    for (int axis = 0; axis < dims_.rank() - 2; ++axis) batch_.extents.push_back(dims_[axis]);
  }

  void run(const KernelContext& context) const override {
    const MatrixOperand<Operand> a(a_, batch_, lengths_, context);
    const MatrixOperand<Operand> b(b_, batch_, lengths_, context);
    const MatrixSink<Result> sink(epilogue_, batch_, lengths_, dims_, swapped_, context);
    Product::run(shape_, blocks_, kernel_, swapped_ ? b : a, swapped_ ? a : b, sink,
                 context.scratch<Panel>(scratch_book_, scratch_));
  }

 private:
  GemmShape shape_;
  GemmBlocks blocks_;
  GemmKernel<Panel> kernel_;
  Dims dims_;
  bool swapped_;
  BatchAxes batch_;
  MatmulLengths lengths_;
  Matrix<Operand> a_, b_;
  RowProgram<Result> epilogue_;
  int scratch_;
};

class MatmulGemmEngine final : public Engine {
 public:
  std::string_view id() const override { return "cpu.matmul_gemm"; }
  EngineKind kind() const override { return EngineKind::generic_fusion; }
  std::string_view description() const override {
    return "packed, register-blocked matrix product with fused prologues and epilogue";
  }

  Support supports(const Region& region, const DeviceProps&) const override {
    if (!region.anchor_as<Matmul>()) return Support::other_operation("the anchor is no matmul");
    const auto& inputs = region.anchor->inputs;
    if (is_complex(inputs[Matmul::a].dtype)) return Support::no("complex operands");
    for (const View& view : inputs)
      if (view.ragged_offset != kNoTensor) return Support::no("a ragged operand");
    if (region.anchor->outputs[Matmul::c].ragged_offset != kNoTensor)
      return Support::no("a ragged result");
    return Support::yes();
  }

  std::vector<Config> configs(const Region& region, const DeviceProps& device) const override {
    return product_configs({shape_of(region)}, region, device, true);
  }

  std::unique_ptr<Kernel> build(const Graph&, const Region& region, const Config& config,
                                const DeviceProps&) const override {
    return build_product<MatmulKernel>(region, shape_of(region).k, config);
  }
};

}  // namespace

const Engine& matmul_gemm_engine() {
  static const MatmulGemmEngine engine;
  return engine;
}

}  // namespace ashlar::cpu
