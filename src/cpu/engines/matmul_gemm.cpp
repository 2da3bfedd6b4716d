// Matmul of any strides as a packed GEMM, with fused prologues and epilogue.
#include <algorithm>

#include "cpu/constants.hpp"
#include "cpu/engines/build.hpp"
#include "cpu/engines/engines.hpp"
#include "cpu/engines/matmul_lengths.hpp"
#include "cpu/gemm/gemm_region.hpp"
#include "cpu/gemm/orientation.hpp"
#include "cpu/gemm/post_ops.hpp"
#include "cpu/row_program.hpp"

namespace ashlar::cpu {

namespace {

// The flattened batch axes of C, and the coordinates of each operand there.
struct BatchAxes {
  Dims extents;  // of C

  // Operands have extent 1 on broadcast axes.
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

GemmShape shape_of(const Region& region) {
  const Dims& a = region.anchor->inputs[Matmul::a].dims;
  const Dims& c = region.anchor->outputs[Matmul::c].dims;
  const int rank = c.rank();
  GemmShape shape{.batch = 1, .m = c[rank - 2], .n = c[rank - 1], .k = a[rank - 1]};
  for (int axis = 0; axis < rank - 2; ++axis) shape.batch *= c[axis];
  if (swaps_operands(region.epilogue)) std::swap(shape.m, shape.n);
  return shape;
}

// The post-ops of the region, if accumulators can be stored directly.
std::optional<PostOpsPattern> post_ops_of(const Region& region) {
  const int rank = region.epilogue.space.rank();
  const DType sums = region.precision();
  if (MatmulLengths(region).limits_result()) return std::nullopt;
  const int columns = rank - (swaps_operands(region.epilogue) ? 2 : 1);
  std::optional<PostOpsPattern> post_ops =
      match_post_ops(region.epilogue, columns, sums, Activations::matched);
  if (post_ops && post_ops->result.dtype != sums) post_ops.reset();
  return post_ops;
}

// A or B with its prologue, compiled for rows along the contiguous axis.
template <class T>
struct Matrix {
  RowProgram<T> program;
  Dims dims;
  int index_axis, k_axis;
  bool along_k;
  std::int64_t row_stride = 0;

  Matrix(const PointwiseProgram& source, int index, int k)
      : dims(source.space), index_axis(index), k_axis(k) {
    along_k = contiguous_views(source, k) > contiguous_views(source, index) ||
              (contiguous_views(source, index) == 0 && dims[k] >= dims[index]);
    program = RowProgram<T>(source, along_k ? k : index);
    if (source.is_plain_load()) row_stride = source.steps[0].view.strides[along_k ? index : k];
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
  bool along_k() const override { return matrix_.along_k; }
  bool same_for_all_batches() const override {
    return !lengths_.limits_k() && std::all_of(matrix_.dims.begin(), matrix_.dims.end() - 2,
                                               [](std::int64_t extent) { return extent == 1; });
  }
  std::int64_t row_stride() const override {
    return !lengths_.limits_k() && bound_.is_memory() ? matrix_.row_stride : 0;
  }
  const T* view(std::int64_t batch, std::int64_t fixed, std::int64_t start, std::int64_t count,
                T* buffer) const override {
    if (!lengths_.limits_k())
      return bound_.view(coords_of(batch, fixed, start).data(), count, buffer);
    row(batch, fixed, start, count, buffer);
    return buffer;
  }
  void row(std::int64_t batch, std::int64_t fixed, std::int64_t start, std::int64_t count,
           T* destination) const override {
    if (lengths_.limits_k()) {  // zeros past this batch's K
      const std::int64_t k = batch_.lengths(lengths_, context_, batch).k;
      const std::int64_t terms =
          along_k() ? std::clamp<std::int64_t>(k - start, 0, count) : (fixed < k ? count : 0);
      std::fill(destination + terms, destination + count, T{0});
      if ((count = terms) == 0) return;
    }
    bound_.load(coords_of(batch, fixed, start).data(), count, destination);
  }

 private:
  Coords coords_of(std::int64_t batch, std::int64_t fixed, std::int64_t start) const {
    Coords coords;
    batch_.decode(batch, matrix_.dims, coords);
    coords[static_cast<std::size_t>(matrix_.index_axis)] = along_k() ? fixed : start;
    coords[static_cast<std::size_t>(matrix_.k_axis)] = along_k() ? start : fixed;
    return coords;
  }

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
             const Dims& dims, bool swapped, const PostOpsPattern* post_ops,
             const KernelContext& context)
      : batch_(batch),
        lengths_(lengths),
        dims_(dims),
        swapped_(swapped),
        context_(context),
        bound_(epilogue.bind(context)),
        post_ops_(post_ops) {
    if (post_ops != nullptr && post_ops->activation)
      activate_ = pointwise_row<T>(post_ops->activation->mode, f32);
  }
  void row(std::int64_t batch, std::int64_t m, std::int64_t n, std::int64_t count,
           T* values) const override {
    if (lengths_.limits_result()) {  // padding past this batch's M and N
      const MatmulLengths::Batch own = batch_.lengths(lengths_, context_, batch);
      const bool inside = m < (swapped_ ? own.n : own.m);
      const std::int64_t end = swapped_ ? own.m : own.n;
      std::fill(values + (inside ? std::clamp<std::int64_t>(end - n, 0, count) : 0), values + count,
                static_cast<T>(lengths_.padding_value()));
    }
    bound_.store(coords_of(batch, m, n).data(), count, values);
  }
  bool dest(std::int64_t batch, std::int64_t m, std::int64_t n,
            GemmDestination<T>& dest) const override {
    if (!post_ops_) return false;
    const Coords coords = coords_of(batch, m, n);
    const int row_axis = dims_.rank() - (swapped_ ? 1 : 2);
    dest.c = element_at<T>(post_ops_->result, coords.data(), context_);
    dest.c_row = post_ops_->result.strides[row_axis];
    dest.has_post_ops = !post_ops_->only_stores();
    if (!dest.has_post_ops) return true;
    dest.post_ops.bias = element_at<T>(post_ops_->bias, coords.data(), context_);
    dest.post_ops.addend = element_at<T>(post_ops_->addend, coords.data(), context_);
    if (post_ops_->addend.present()) dest.post_ops.addend_row = post_ops_->addend.strides[row_axis];
    dest.post_ops.low = static_cast<T>(post_ops_->low);
    dest.post_ops.high = static_cast<T>(post_ops_->high);
    if (post_ops_->activation) {
      dest.post_ops.activation = &*post_ops_->activation;
      dest.post_ops.activate = activate_;
    }
    return true;
  }

 private:
  Coords coords_of(std::int64_t batch, std::int64_t m, std::int64_t n) const {
    Coords coords;
    batch_.decode(batch, dims_, coords);
    const auto rank = static_cast<std::size_t>(dims_.rank());
    coords[rank - 2] = swapped_ ? n : m;
    coords[rank - 1] = swapped_ ? m : n;
    return coords;
  }

  const BatchAxes& batch_;
  const MatmulLengths& lengths_;
  const Dims& dims_;
  bool swapped_;
  const KernelContext& context_;
  typename RowProgram<T>::Bound bound_;
  const PostOpsPattern* post_ops_;  // null: rows go through the epilogue program
  PointwiseRow<T> activate_;
};

template <class T>
class MatmulKernel final : public Kernel {
 public:
  MatmulKernel(const Region& region, const Config& config)
      : shape_(shape_of(region)),
        blocks_(GemmBlocks::from_knobs(config)),
        kernel_(gemm_kernel<T>()),
        dims_(region.anchor->outputs[Matmul::c].dims),
        swapped_(swaps_operands(region.epilogue)),
        lengths_(region),
        a_(region.prologues[Matmul::a], dims_.rank() - 2, dims_.rank() - 1),
        b_(region.prologues[Matmul::b], dims_.rank() - 1, dims_.rank() - 2),
        epilogue_(region.epilogue, swapped_ ? dims_.rank() - 2 : dims_.rank() - 1),
        scratch_(scratch_layout_.add("panels", gemm_scratch_bytes(shape_, blocks_, sizeof(T)))) {
    for (int axis = 0; axis < dims_.rank() - 2; ++axis) batch_.extents.push_back(dims_[axis]);
    post_ops_ = post_ops_of(region);
    right_ = region.prologues[swapped_ ? Matmul::a : Matmul::b];
  }

  // Packs a constant right operand once.
  void keep_constants(const KernelContext& constants) override {
    if (blocks_.threads == 0 || lengths_.limits_k() || !is_constant(right_, constants)) return;
    const MatrixOperand<T> right(swapped_ ? a_ : b_, batch_, lengths_, constants);
    packed_.allocate(packed_b_elements(shape_, right));
    pack_b(shape_, right, packed_.data());
  }

  void run(const KernelContext& context) const override {
    const MatrixOperand<T> a(a_, batch_, lengths_, context);
    const MatrixOperand<T> b(b_, batch_, lengths_, context);
    const MatrixSink<T> sink(epilogue_, batch_, lengths_, dims_, swapped_,
                             post_ops_ ? &*post_ops_ : nullptr, context);
    gemm<T>(shape_, blocks_, kernel_, swapped_ ? b : a, swapped_ ? a : b, sink,
            context.scratch<T>(scratch_layout_, scratch_), packed_.data());
  }

 private:
  GemmShape shape_;
  GemmBlocks blocks_;
  GemmKernel<T> kernel_;
  Dims dims_;
  bool swapped_;
  BatchAxes batch_;
  MatmulLengths lengths_;
  Matrix<T> a_, b_;
  RowProgram<T> epilogue_;
  std::optional<PostOpsPattern> post_ops_;
  PointwiseProgram right_;  // prologue of the right operand
  PrepackedBuffer<T> packed_;
  int scratch_;
};

class MatmulGemmEngine final : public Engine {
 public:
  std::string_view id() const override { return "cpu.matmul_gemm"; }
  EngineKind kind() const override { return EngineKind::generic_fusion; }
  std::string_view description() const override {
    return "packed, register-blocked GEMM with fused prologues and epilogue";
  }

  bool stores_last(const Region& region) const override {
    // Post-ops are applied to partial sums that are kept in the result.
    return region.anchor_as<Matmul>() && !post_ops_of(region);
  }
  Support supports(const Region& region, const DeviceProps&) const override {
    if (!region.anchor_as<Matmul>()) return Support::other_operation("the anchor is not a matmul");
    const auto& inputs = region.anchor->inputs;
    if (is_complex(inputs[Matmul::a].dtype)) return Support::no("complex operands");
    for (const View& view : inputs)
      if (view.ragged_offset != kNoTensor) return Support::no("a ragged operand");
    if (region.anchor->outputs[Matmul::c].ragged_offset != kNoTensor)
      return Support::no("a ragged result");
    return Support::yes();
  }

  std::vector<Config> configs(const Region& region, const DeviceProps& device) const override {
    return gemm_region_configs({shape_of(region)}, region, device, true,
                               post_ops_of(region).has_value());
  }

  std::unique_ptr<Kernel> build(const Graph&, const Region& region, const Config& config,
                                const DeviceProps&) const override {
    return build_gemm_kernel<MatmulKernel>(region, config);
  }
};

}  // namespace

const Engine& matmul_gemm_engine() {
  static const MatmulGemmEngine engine;
  return engine;
}

}  // namespace ashlar::cpu
