#include "cuda/engines/sm90/pixel_shape.hpp"

#include <algorithm>
#include <limits>

#include "base/ceil_div.hpp"
#include "cuda/engines/blended_epilogue.hpp"
#include "cuda/engines/channel_axes.hpp"
#include "cuda/engines/sm90/gemm_tile.hpp"
#include "cuda/text/program_text.hpp"
#include "plan/merge_axes.hpp"

namespace ashlar::cuda {

namespace {

constexpr std::size_t kMaxTaps = 160, kMaxPhases = 8, kMaxMaps = 8;

// Columns of a result in 16 bytes: the stores of a warp then fill whole 32-byte sectors.
int max_vector(const PointwiseProgram& epilogue) {
  int widest = 16;
  for (const auto& store : epilogue.stores) widest = std::max(widest, bit_width(store.view.dtype));
  return std::max(128 / widest, 1);
}

bool is_mma_type(DType a, DType b) {
  const auto is_fp8 = [](DType t) { return t == DType::e4m3 || t == DType::e5m2; };
  if (is_fp8(a) && is_fp8(b)) return true;
  return a == b && (a == bf16 || a == f16 || a == f32 || a == DType::i8);
}

// Uniform stride of the axes from `first` on, merged row-major; nothing where there is none.
std::optional<std::int64_t> joint_stride(const View& view, int first) {
  std::int64_t stride = 0, extent = 1;
  for (int axis = view.dims.rank() - 1; axis >= first; --axis) {
    if (view.dims[axis] == 1) continue;
    if (extent == 1)
      stride = view.strides[axis];
    else if (view.strides[axis] != stride * extent)
      return {};
    extent *= view.dims[axis];
  }
  return stride;
}

// The same for all pixels of [images, channels, spatial...].
std::optional<std::int64_t> pixel_stride(View view) {
  view.dims[1] = 1;
  return joint_stride(view, 0);
}

// Filters [K, C, spatial...] as (contiguous, taps, other): (C, taps, K) in place or repacked;
// `across`: (K of a group, taps, C of all groups).
RepackedOperand take_filters(const View& view, const ImplicitGemm& product, bool across) {
  const std::int64_t filters = view.dims[0], channels = view.dims[1], taps = product.taps(),
                     groups = product.groups, of_group = filters / groups;
  RepackedOperand result;
  if (product.patches) {
    result.view = view;
    result.view.dims = {product.depth, taps, filters};
    result.view.strides = {1, view.strides[2], view.strides[0]};
    return result;
  }
  const std::int64_t of_tap = *joint_stride(view, 2);
  if (!across && is_tma_aligned(view, 1)) {
    result.view = view;
    result.view.dims = {channels, taps, filters};
    result.view.strides = {1, of_tap, view.strides[0]};
    return result;
  }
  View from = view;
  Dims to;
  const std::int64_t pitch =
      round_up(across ? of_group : channels, elements_per_16_bytes(view.dtype));
  const std::int64_t of_filter = view.strides[0], of_channel = view.strides[1];
  if (!across) {
    from.dims = {filters, taps, channels};
    from.strides = {of_filter, of_tap, of_channel};
    to = {taps * pitch, pitch, 1};
  } else if (of_channel == 1) {
    from.dims = {groups, taps, channels, of_group};
    from.strides = {of_group * of_filter, of_tap, of_channel, of_filter};
    to = {channels * taps * pitch, pitch, taps * pitch, 1};
  } else {
    from.dims = {groups, channels, taps, of_group};
    from.strides = {of_group * of_filter, of_channel, of_tap, of_filter};
    to = {channels * taps * pitch, taps * pitch, pitch, 1};
  }
  result = packed({plain_load(from), view.dtype, to});
  result.view.dtype = view.dtype;
  result.view.dims = {across ? of_group : channels, taps, across ? groups * channels : filters};
  result.view.strides = {1, pitch, taps * pitch};
  return result;
}

// TMA must support the operands whatever the tile.
constexpr int kAnyTile = 64;

bool has_negative_stride(const PointwiseProgram& program) {
  for (const auto& step : program.steps)
    if (step.kind == PointwiseProgram::Step::Kind::load)
      for (const std::int64_t stride : step.view.strides)
        if (stride < 0) return true;
  return false;
}

// Results [images, channels, spatial...] with contiguous pixels.
bool has_contiguous_pixels(const View& result) {
  if (is_contiguous(result, 1)) return false;
  for (int axis = result.dims.rank() - 1; axis > 1; --axis)
    if (result.dims[axis] > 1) return result.strides[axis] == 1;
  return false;
}

}  // namespace

Support is_pixel_shape(const Region& region) {
  if (Support support = is_implicit_gemm(region); !support) return support;
  if (region.epilogue.stores.empty()) return Support::no("only reductions are stored");
  const PointwiseProgram &pixels = region.prologues[0], &filters = region.prologues[1];
  if (!filters.is_plain_load()) return Support::no("a prologue is fused into the filters");
  if (reads_coordinates(pixels)) return Support::no("the prologue reads coordinates");
  const View& filter = filters.steps[0].view;
  const DType of_pixels = region.anchor->inputs[0].dtype;
  if (are_computed(pixels, of_pixels) && !pixels.stores.empty())
    return Support::no("the computed image is stored, too");
  if (!is_mma_type(of_pixels, filter.dtype))
    return Support::no("tensor cores do not multiply {} by {}", to_string(of_pixels),
                       to_string(filter.dtype));
  const DType compute = region.anchor->compute;
  if (compute != f32 && !(of_pixels == DType::i8 && compute == DType::i32))
    return Support::no("computes in {}", to_string(compute));
  if (touches_unsupported(region))
    return Support::no("a tensor is ragged or complex, or a program generates random numbers");
  if (pixels.precision() != f32) return Support::no("the prologue of the image computes in f64");
  if (!joint_stride(filter, 2)) return Support::no("strides between filter taps are not uniform");
  for (const PointwiseProgram* program : {&pixels, &filters})
    if (has_negative_stride(*program)) return Support::no("an operand has a negative stride");

  if (const ImplicitGemm product(region); product.patches) {
    if (!pixels.is_plain_load() || !patches_of(pixels.steps[0].view, product) ||
        filter.strides[3] != filter.dims[1] || (filter.dims[1] > 1 && filter.strides[1] != 1))
      return Support::no("lines of patches of few channels are not contiguous");
  }
  const PixelShape shape(region);
  const ImplicitGemm& product = shape.product;
  const int rank = region.epilogue.space.rank();
  if (Support support = GemmTails::supports(region, shape.axes(rank)); !support) return support;
  for (const TailReduction& reduction : region.reductions) {
    if (shape.swap && product.phases.size() > 1)
      return Support::no("tail reductions over several phases with contiguous pixels");
    for (int axis = 0; axis < rank; ++axis)
      if (axis != 1 && reduction.finish.space[axis] > 1)
        return Support::no("a tail reduction does not cover all pixels");
  }
  if (product.phases.size() > kMaxPhases)
    return Support::no("{} residues modulo the stride, at most {} supported", product.phases.size(),
                       kMaxPhases);
  if (product.phases[0].taps.empty()) return Support::no("no filter tap reaches a pixel");
  if (product.taps() > static_cast<std::int64_t>(kMaxTaps))
    return Support::no("{} filter taps, at most {} supported", product.taps(), kMaxTaps);
  if (shape.depths().empty())
    return Support::no("{} channels per group are not a multiple of 32 bytes", product.depth);
  constexpr std::array<std::int64_t, 3> kFurthest = {0xffff, 0xff, 0x1f};
  constexpr std::int64_t kMaxPixels = std::numeric_limits<int>::max() - (1 << 20);
  // Repacked they would be mostly padding.
  const std::int64_t channels = region.anchor->inputs[0].dims[1];
  if (shape.pixels.pack && reads_along(pixels, 1) && channels < elements_per_16_bytes(bf16) &&
      bit_width(of_pixels) > 8 && product.spatial < 3)
    return Support::no("{} contiguous channels are left to cuda.conv_direct", channels);
  for (const ImplicitGemm::Phase& phase : product.phases) {
    if (static_cast<double>(product.images) * static_cast<double>(phase.pixels_of_image()) >
        static_cast<double>(kMaxPixels))
      return Support::no("the number of pixels exceeds an int");
    for (const ImplicitGemm::Tap& tap : phase.taps)
      for (const std::int64_t offset : tap.offset)
        if (offset > kFurthest[static_cast<std::size_t>(product.spatial - 1)])
          return Support::no("a filter window of {} pixels exceeds the im2col offsets of TMA",
                             offset);
    if (phase.taps.empty()) continue;
    if (const char* reason = refusal(shape.pixel_map(phase, kAnyTile, shape.depths()[0])))
      return Support::no("TMA im2col cannot load the image: {}", reason);
  }
  if (const char* reason = refusal(shape.filter_map(kAnyTile, shape.depths()[0])))
    return Support::no("TMA cannot load the filters: {}", reason);
  return Support::yes();
}

PixelShape::PixelShape(const Region& region)
    : product(region),
      pixel_type(region.anchor->inputs[0].dtype),
      filter_type(region.anchor->inputs[1].dtype),
      epilogue(blended_epilogue(region)) {
  const PointwiseProgram& image = region.prologues[0];
  const bool is_computed = are_computed(image, pixel_type);
  if (product.patches)
    pixels.view = *patches_of(image.steps[0].view, product);
  else if (is_computed)
    pixels.view = form_of_pixels(image, pixel_type);
  else
    pixels = take_pixels(image, pixel_type);
  // wgmma supports operands that are not K-major for 16-bit types only.
  columns_contiguous = product.backward && bit_width(filter_type) == 16;
  filters = take_filters(region.prologues[1].steps[0].view, product,
                         product.backward && !columns_contiguous);
  pointwise = product.is_pointwise() && pixel_stride(pixels.view).has_value();
  if (is_computed) computed = compute_pixels(image, pointwise);
  swap = has_contiguous_pixels(region.epilogue.stores.at(0).view);
  vector = 1;
  const std::int64_t of_image = product.phases[0].pixels_of_image();
  const bool one_phase = product.phases.size() == 1;
  if (swap) {
    PointwiseProgram joined = epilogue;
    Dims full = joined.space, apart = full;
    apart[1] = 1;  // channels are not merged
    merge_axes({&joined}, {&full, &apart});
    whole = one_phase && joined.space.rank() == 3 && joined.space[1] == epilogue.space[1];
    if (!whole) return;
    epilogue = std::move(joined);
    vector = vector_length(epilogue, max_vector(epilogue));
    while (of_image % vector != 0) vector /= 2;
    return;
  }
  move_axis_last(epilogue, 1);
  whole = one_phase;
  if (whole) merge_rows(epilogue);
  vector = vector_length(epilogue, max_vector(epilogue));
  while (product.columns % vector != 0) vector /= 2;
}

std::optional<PixelShape> PixelShape::with_windows() const {
  const ImplicitGemm::Axes one = {1, 1, 1};
  if (!swap && has_one_tap() && product.groups == 1) return *this;
  const ImplicitGemm::Phase& most = product.phases[0];
  const std::int64_t planes = std::max<std::int64_t>(1, most.planes());
  if (swap || pointwise || product.step != one || std::ssize(most.taps) < 2 * planes) return {};
  PixelShape longer = *this;
  longer.product = product.with_padded_lines();
  for (const ImplicitGemm::Phase& phase : longer.product.phases)
    if (!phase.taps.empty() && refusal(longer.pixel_map(phase, kAnyTile, depths()[0])) != nullptr)
      return {};
  return longer;
}

std::vector<TailAxis> PixelShape::axes(int rank) const {
  std::vector<TailAxis> result(static_cast<std::size_t>(rank),
                               swap ? TailAxis::column : TailAxis::row);
  result[1] = swap ? TailAxis::row : TailAxis::column;
  return result;
}

std::vector<int> PixelShape::depths() const {
  std::vector<int> result;
  const std::int64_t bytes = product.depth * (bit_width(pixel_type) / 8);
  for (const int depth : {128, 64, 32}) {
    // With several groups a K-block must not reach into the next group.
    if (product.groups > 1 && bytes % depth != 0) continue;
    // A narrower stage only where it needs less zero padding.
    if (!result.empty() && round_up(bytes, depth) == round_up(bytes, result.back())) continue;
    result.push_back(depth);
  }
  // Least padding first.
  std::stable_sort(result.begin(), result.end(),
                   [&](int a, int b) { return round_up(bytes, a) < round_up(bytes, b); });
  return result;
}

TensorMapForm PixelShape::pixel_map(const ImplicitGemm::Phase& phase, int tile,
                                    int depth_bytes) const {
  const View& view = pixels.view;
  const std::int64_t depth = depth_bytes / (bit_width(pixel_type) / 8);
  TensorMapForm form{
      .dtype = pixel_type, .rounds_to_tf32 = pixel_type == f32, .swizzle = depth_bytes};
  form.axes.push_back({.extent = view.dims[1], .box = depth});
  const auto distance = [&](int axis) {  // arbitrary for an extent of 1
    return view.dims[axis] == 1 ? elements_per_16_bytes(pixel_type) : view.strides[axis];
  };
  if (pointwise) {
    const std::int64_t count = pixel_count(phase);
    form.axes.push_back(
        {.extent = count,
         .stride = count == 1 ? elements_per_16_bytes(pixel_type) : *pixel_stride(view),
         .box = tile});
    return form;
  }
  form.pixels = tile;
  for (int axis = view.dims.rank() - 1; axis > 1; --axis) {
    const auto i = static_cast<std::size_t>(axis + 3 - view.dims.rank());
    form.axes.push_back({.extent = view.dims[axis],
                         .stride = distance(axis),
                         .step = product.step[i],
                         .lower = phase.lower[i],
                         .upper = phase.upper[i]});
  }
  form.axes.push_back({.extent = view.dims[0], .stride = distance(0)});
  return form;
}

TensorMapForm PixelShape::filter_map(int tile, int depth_bytes) const {
  const View& view = filters.view;
  const std::int64_t bytes = bit_width(filter_type) / 8, depth = depth_bytes / bytes;
  TensorMapForm form{.dtype = filter_type,
                     .rounds_to_tf32 = filter_type == f32,
                     .swizzle = columns_contiguous ? 128 : depth_bytes};
  for (int axis = 0; axis < 3; ++axis)
    form.axes.push_back({.extent = view.dims[axis],
                         .stride = axis > 0 && view.dims[axis] == 1
                                       ? elements_per_16_bytes(filter_type)
                                       : view.strides[axis]});
  form.axes[0].box = columns_contiguous ? 128 / bytes : depth;
  form.axes[2].box = columns_contiguous ? depth : tile;
  return form;
}

std::optional<TensorMapForm> PixelShape::result_map() const {
  return row_map(epilogue.stores.at(0).view, kBoxRows);
}
std::optional<TensorMapForm> PixelShape::row_map(View rows, int box_rows) const {
  if (swap || !whole || vector < 2) return {};  // the epilogue program runs on pairs
  const DType dtype = rows.dtype;
  if (dtype != bf16 && dtype != f16 && dtype != f32) return {};
  const int last = rows.dims.rank() - 1;
  const std::int64_t columns = rows.dims[last];
  if (rows.strides[last] != 1 || rows.offset % elements_per_16_bytes(dtype) != 0) return {};
  rows.dims[last] = 1;
  const std::optional<std::int64_t> stride = joint_stride(rows, 0);
  const std::int64_t count = element_count(rows.dims);
  if (!stride) return {};
  TensorMapForm form{.dtype = dtype, .swizzle = kBoxRowBytes};
  form.axes.push_back({.extent = columns, .box = kBoxRowBytes / (bit_width(dtype) / 8)});
  form.axes.push_back({.extent = count,
                       .stride = count == 1 ? elements_per_16_bytes(dtype) : *stride,
                       .box = box_rows});
  if (refusal(form) != nullptr) return {};
  return form;
}

}  // namespace ashlar::cuda
