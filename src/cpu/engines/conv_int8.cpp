// int8 convolution with i32 accumulators: windows are read in place, or from image rows staged with
// padding.
#include <algorithm>

#include "cpu/conv/conv_rows.hpp"
#include "cpu/conv/int8_image.hpp"
#include "cpu/engines/build.hpp"
#include "cpu/engines/engines.hpp"
#include "cpu/gemm/int8_gemm_kernel.hpp"
#include "cpu/kernels/convert.hpp"

namespace ashlar::cpu {

namespace {

// The convolution as an int8 GEMM: pixels of y are rows, filters are columns, groups are batches.
struct Int8Conv {
  ConvGeometry geometry;
  ByteOperand a, b;  // x and w
  bool is_matrix;    // 1 x 1: pixels of x are rows of a matrix, across images
  StridedRowLayout matrix;
  Int8ImageLayout image;
  Int8ColumnSource columns;
  Int8GemmShape shape;
  Int8Output result = Int8Output::i32;
  bool in_place;  // C is stored directly to y

  explicit Int8Conv(const Region& region, std::int64_t kernel_rows)
      : geometry(*region.anchor), a(region, ConvForward::x, 1), b(region, ConvForward::w, 1) {
    const View& y = region.epilogue.stores[0].view;
    in_place = stores_as_it_is(region.epilogue, result) && y.strides[1] == 1 &&
               pixels_are_uniform(y.dims, y.strides) && geometry.alpha == 1.0 &&
               z_of(region).empty();
    is_matrix = pixels_are_uniform(a.dims(), a.strides()) && is_pointwise();
    shape.batch = geometry.groups;
    shape.columns = geometry.filters;
    shape.rows = geometry.forward_phase().pixels();
    shape.a_signed = a.is_signed();
    shape.b_signed = b.is_signed();
    shape.one_b = geometry.groups == 1;
    if (is_matrix)
      set_matrix(kernel_rows);
    else
      set_image();
    set_columns();
  }

  Int8GemmScratch memory(const Int8GemmBlocks& blocks) const {
    const std::int64_t lines = blocks.lines(shape);
    return int8_gemm_scratch(
        shape, blocks, is_matrix ? matrix.staged_bytes(lines) : image.staged_bytes(lines, geometry),
        in_place);
  }
  std::int64_t row_bytes() const {  // see choose_int8_blocks
    const std::int64_t operand = is_matrix ? matrix.staged_row()
                                           : image.planes * image.line_step * image.line_stride /
                                                 std::max<std::int64_t>(shape.width, 1);
    return operand + shape.columns * (in_place ? result_bytes(result) : 4);
  }

 private:
  bool is_pointwise() const {
    for (std::size_t axis = 0; axis < kMaxSpatial; ++axis)
      if (geometry.window[axis] != 1 || geometry.stride[axis] != 1 || geometry.padding[axis] != 0 ||
          geometry.x[axis] != geometry.y[axis])
        return false;
    return true;
  }
  // Whether pixels, numbered over all images, have a uniform stride.
  static bool pixels_are_uniform(const Dims& dims, const Dims& strides) {
    const int last = dims.rank() - 1;
    std::int64_t distance = strides[last];
    for (int axis = last; axis >= 0; --axis) {
      if (axis == 1) continue;
      if (dims[axis] != 1 && strides[axis] != distance) return false;
      distance *= dims[axis];
    }
    return true;
  }

  void set_matrix(std::int64_t kernel_rows) {
    const int last = a.dims().rank() - 1;
    matrix = {.batch_offsets = {},
              .rows = shape.rows,
              .k = geometry.channels,
              .row_stride = pixel_distance(a.dims(), a.strides(), last),
              .k_stride = a.strides()[1],
              .width = std::clamp<std::int64_t>(shape.rows, 1, kernel_rows),
              .is_signed = a.is_signed()};
    for (std::int64_t group = 0; group < geometry.groups; ++group)
      matrix.batch_offsets.push_back(group * geometry.channels * a.strides()[1]);
    shape.width = matrix.width;
    shape.lines = divide_up(shape.rows, shape.width);
    shape.segments = 1;
    shape.k = geometry.channels;
  }
  // Strides of axes of extent 1 are meaningless.
  static std::int64_t pixel_distance(const Dims& dims, const Dims& strides, int last) {
    for (int axis = last; axis >= 0; --axis)
      if (axis != 1 && dims[axis] != 1) return strides[axis];
    return strides[last];
  }

  void set_image() {
    image = Int8ImageLayout(geometry, a);
    constexpr std::size_t kLast = kMaxSpatial - 1;
    shape.width = geometry.y[kLast];
    shape.lines = geometry.images * geometry.y[0] * geometry.y[1];
    shape.segments = static_cast<std::int64_t>(image.segment_offsets.size());
    shape.k = image.taps_per_segment() * geometry.channels;
  }

  void set_columns() {
    const int first = 2 - geometry.first_axis();  // axis of w for Spatial's axis 0
    const auto stride = [&](std::size_t axis) {
      return static_cast<int>(axis) < geometry.first_axis()
                 ? 0
                 : b.strides()[first + static_cast<int>(axis)];
    };
    constexpr std::size_t kLast = kMaxSpatial - 1;
    columns.column_stride = b.strides()[0];
    columns.channel_stride = b.strides()[1];
    columns.channels = geometry.channels;
    columns.taps = is_matrix ? 1 : image.taps_per_segment();
    columns.tap_stride = geometry.flip ? -stride(kLast) : stride(kLast);
    for (std::int64_t group = 0; group < geometry.groups; ++group)
      columns.batch_offsets.push_back(group * geometry.filters * b.strides()[0]);
    // Taps in the order of the image's segments; each starts a segment or is inside one.
    const ConvPhase phase = geometry.forward_phase();
    for (std::size_t tap = 0; tap < phase.taps.size();
         tap += static_cast<std::size_t>(columns.taps)) {
      std::int64_t offset = 0;
      for (std::size_t axis = 0; axis < kMaxSpatial; ++axis)
        offset += phase.taps[tap].stored[axis] * stride(axis);
      columns.segment_offsets.push_back(offset);
    }
  }
};

// T: type of the accumulators passed to the epilogue.
template <class T>
class ConvSink final : public Int8Sink {
 public:
  ConvSink(const ConvStore<T>& store, const ConvGeometry& geometry, const ConvPhase& phase,
           const View& view, bool along_filters, const KernelContext& context)
      : bound_(store, context),
        geometry_(geometry),
        phase_(phase),
        view_(view),
        along_filters_(along_filters),
        data_(static_cast<std::byte*>(context.pointer(view.tensor))) {}

  Target target(std::int64_t group, std::int64_t row, std::int64_t column) const override {
    const ConvCoords coords = coords_of(ConvPixel(phase_, row), group, column);
    std::int64_t index = view_.offset;
    for (int axis = 0; axis < view_.dims.rank(); ++axis)
      index += coords[static_cast<std::size_t>(axis)] * view_.strides[axis];
    return {data_ + index * (bit_width(view_.dtype) / 8), row_distance()};
  }

  void store(std::int64_t group, std::int64_t row, std::int64_t rows, std::int64_t column,
             std::int64_t columns, const std::int32_t* acc, std::int64_t acc_row) const override {
    constexpr std::int64_t kConvChunk = 512;
    alignas(64) T chunk[kConvChunk];
    const LoadRow<T> load = load_row<T>(i32);
    if (along_filters_) {
      for (std::int64_t i = 0; i < rows; ++i)
        for (std::int64_t first = 0; first < columns; first += kConvChunk) {
          const std::int64_t count = std::min(kConvChunk, columns - first);
          load(acc, i * acc_row + first, 1, count, chunk);
          bound_.row(coords_of(ConvPixel(phase_, row + i), group, column + first), 1, 1, count,
                     chunk);
        }
      return;
    }
    for_pixel_runs(phase_, row, rows,
                   [&](const ConvPixel& pixel, std::int64_t length, std::int64_t done) {
                     for (std::int64_t first = 0; first < length; first += kConvChunk) {
                       const std::int64_t count = std::min(kConvChunk, length - first);
                       ConvPixel start = pixel;
                       start.at[kMaxSpatial - 1] += first;
                       for (std::int64_t j = 0; j < columns; ++j) {
                         load(acc, (done + first) * acc_row + j, acc_row, count, chunk);
                         bound_.row(coords_of(start, group, column + j), 1 + geometry_.spatial, 1,
                                    count, chunk);
                       }
                     }
                   });
  }

 private:
  ConvCoords coords_of(const ConvPixel& pixel, std::int64_t group, std::int64_t filter) const {
    ConvCoords coords;
    geometry_.put(pixel.image, group * geometry_.filters + filter, pixel.at, coords.data());
    return coords;
  }
  // Strides of axes of extent 1 are meaningless.
  std::int64_t row_distance() const {
    for (int axis = view_.dims.rank() - 1; axis >= 0; --axis)
      if (axis != 1 && view_.dims[axis] != 1) return view_.strides[axis];
    return 0;
  }

  typename ConvStore<T>::Bound bound_;
  const ConvGeometry& geometry_;
  const ConvPhase& phase_;
  const View& view_;
  bool along_filters_;
  std::byte* data_;
};

template <class T>
class ConvInt8Kernel final : public Int8GemmKernel<Int8Conv> {
 public:
  ConvInt8Kernel(const Region& region, const Config& config, const PointwiseProgram& epilogue)
      : Int8GemmKernel(region, config, ConvForward::w, Int8Conv(region, int8_micro_kernel().rows)),
        phase_(problem_.geometry.forward_phase()),
        along_filters_(contiguous_views(epilogue, 1) >=
                       contiguous_views(epilogue, epilogue.space.rank() - 1)),
        store_(epilogue, z_of(region), problem_.geometry,
               along_filters_ ? 1 : 1 + problem_.geometry.spatial, 1),
        view_(epilogue.stores[0].view) {}

  void run(const KernelContext& context) const override {
    const ConvSink<T> sink(store_, problem_.geometry, phase_, view_, along_filters_, context);
    const std::uint8_t* x = a_bytes(context);
    if (problem_.is_matrix)
      multiply(context, StridedRows(problem_.matrix, x), sink);
    else
      multiply(context, Int8ImageRows(problem_.image, problem_.geometry, x), sink);
  }

 private:
  ConvPhase phase_;
  bool along_filters_;
  ConvStore<T> store_;
  View view_;
};

class ConvInt8Engine final : public Engine {
 public:
  std::string_view id() const override { return "cpu.conv_int8"; }
  EngineKind kind() const override { return EngineKind::generic_fusion; }
  std::string_view description() const override {
    return "int8 forward convolution, 4 elements of K per 32-bit lane";
  }

  Support supports(const Region& region, const DeviceProps&) const override {
    if (!region.anchor_as<ConvForward>())
      return Support::other_operation("the anchor is not a forward convolution");
    const int spatial = region.anchor->outputs[0].dims.rank() - 2;
    if (spatial < 1 || spatial > kMaxSpatial)
      return Support::no("{} spatial axes, 1 to 3 are supported", spatial);
    if (touches_ragged(region)) return Support::no("a ragged operand");
    const ConvGeometry geometry(*region.anchor);
    return int8_gemm_support(region, geometry.tap_count() * geometry.channels);
  }

  std::vector<Config> configs(const Region& region, const DeviceProps& device) const override {
    const Int8Conv problem(region, kMaxInt8Rows);
    const Int8GemmBlocks blocks = choose_int8_blocks(problem.shape, device, problem.row_bytes());
    return {int8_gemm_config(region, problem.shape, blocks, problem.memory(blocks),
                             problem.a.materialised_bytes() + problem.b.materialised_bytes())};
  }

  std::unique_ptr<Kernel> build(const Graph&, const Region& region, const Config& config,
                                const DeviceProps&) const override {
    const bool blends = !z_of(region).empty() || ConvGeometry(*region.anchor).alpha != 1;
    if (const auto program = float_epilogue(region.epilogue); program && !blends)
      return std::make_unique<ConvInt8Kernel<float>>(region, config, *program);
    return std::make_unique<ConvInt8Kernel<double>>(region, config, region.epilogue);
  }
};

}  // namespace

const Engine& conv_int8_engine() {
  static const ConvInt8Engine engine;
  return engine;
}

}  // namespace ashlar::cpu
