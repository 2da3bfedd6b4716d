#include "cuda/engines/implicit_gemm.hpp"
#include "base/ceil_div.hpp"
#include "cuda/engines/spatial_axes.hpp"

#include <algorithm>

namespace ashlar::cuda {

namespace {

using Axes = ImplicitGemm::Axes;

const ConvAttributes* image_attributes_of(const Region& region) {
  if (const auto* op = region.anchor_as<ConvForward>()) return op;
  return region.anchor_as<ConvBackwardData>();
}

// One axis of a phase.
struct Residue {
  std::int64_t first, step, extent, lower;
  std::vector<std::pair<std::int64_t, std::int64_t>> taps;  // offset, index in the filter
};

// from = pixel * stride - padding + tap * dilation
std::vector<Residue> forward_residues(std::int64_t to, std::int64_t window, std::int64_t padding,
                                      std::int64_t dilation) {
  Residue all{0, 1, to, -padding, {}};
  for (std::int64_t tap = 0; tap < window; ++tap) all.taps.emplace_back(tap * dilation, tap);
  return {all};
}

// pixel + padding = from * stride + tap * dilation: with pixel = first + stride * i,
// from = i + (first + padding - tap * dilation) / stride for the taps that divide evenly.
std::vector<Residue> backward_residues(std::int64_t to, std::int64_t window, std::int64_t padding,
                                       std::int64_t dilation, std::int64_t stride) {
  std::vector<Residue> result;
  for (std::int64_t first = 0; first < std::min(stride, to); ++first) {
    Residue own{first, stride, ceil_div(to - first, stride), 0, {}};
    for (std::int64_t tap = window - 1; tap >= 0; --tap) {
      const std::int64_t distance = first + padding - tap * dilation;
      if (distance % stride != 0) continue;
      if (own.taps.empty()) own.lower = distance / stride;  // the last tap reaches furthest back
      own.taps.emplace_back(distance / stride - own.lower, tap);
    }
    result.push_back(std::move(own));
  }
  return result;
}

// Patches pay where channels are too few to fill a K-block by themselves.
constexpr std::int64_t kFewPatchChannels = 16;

}  // namespace

Support is_implicit_gemm(const Region& region) {
  if (image_attributes_of(region) == nullptr)
    return Support::other_operation("not a forward or backward-data convolution");
  const int rank = region.anchor->inputs[0].dims.rank();
  if (rank < 3 || rank > 5) return Support::no("1 to 3 spatial axes are supported");
  for (const Dims& dims :
       {region.anchor->inputs[0].dims, region.anchor->inputs[1].dims, region.epilogue.space})
    if (element_count(dims) == 0) return Support::no("no elements");
  return Support::yes();
}

ImplicitGemm::ImplicitGemm(const Region& region)
    : backward(region.anchor_as<ConvBackwardData>() != nullptr), op(image_attributes_of(region)) {
  const Dims& from = region.anchor->inputs[0].dims;
  const Dims& filter = region.anchor->inputs[1].dims;
  const Dims& to = region.epilogue.space;
  spatial = from.rank() - 2;
  images = from[0];
  groups = (backward ? to[1] : from[1]) / filter[1];
  depth = backward ? filter[0] / groups : filter[1];
  columns = backward ? filter[1] : filter[0] / groups;
  from_extent = spatial_of(from);
  to_extent = spatial_of(to);
  window = spatial_of(filter);
  const Axes stride = per_axis(op->stride, 1), dilation = per_axis(op->dilation, 1),
             padding = per_axis(op->padding, 0);
  step = backward ? Axes{1, 1, 1} : stride;
  patches = !backward && spatial == 2 && groups == 1 && depth < kFewPatchChannels &&
            window == stride && dilation == Axes{1, 1, 1} && padding == Axes{0, 0, 0} &&
            op->mode == ConvMode::cross_correlation && window[1] > 1 && window[2] > 1;
  if (patches) {
    const std::int64_t lines = window[1];
    Phase phase{{0, 0, 0}, {1, 1, 1}, to_extent, {0, 0, 0}, {1 - lines, 0, 0}, {}, to_extent};
    for (std::int64_t line = 0; line < lines; ++line) phase.taps.push_back({{line, 0, 0}, line});
    phases.push_back(std::move(phase));
    spatial = 3;
    depth *= window[2];
    from_extent = {lines, to_extent[1], to_extent[2]};
    window = {lines, 1, 1};
    step = {1, 1, 1};
    return;
  }
  const bool flips = op->mode == ConvMode::convolution;

  std::array<std::vector<Residue>, 3> residues;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    residues[axis] =
        backward ? backward_residues(to_extent[axis], window[axis], padding[axis], dilation[axis],
                                     stride[axis])
                 : forward_residues(to_extent[axis], window[axis], padding[axis], dilation[axis]);
    if (!flips) continue;
    for (Residue& residue : residues[axis])
      for (auto& tap : residue.taps) tap.second = window[axis] - 1 - tap.second;
  }
  for (const Residue& d : residues[0])
    for (const Residue& h : residues[1])
      for (const Residue& w : residues[2]) {
        Phase phase{{d.first, h.first, w.first},
                    {d.step, h.step, w.step},
                    {d.extent, h.extent, w.extent},
                    {d.lower, h.lower, w.lower},
                    {},
                    {},
                    {d.extent, h.extent, w.extent}};
        for (std::size_t axis = 0; axis < 3; ++axis)
          phase.upper[axis] =
              phase.lower[axis] + (phase.extent[axis] - 1) * step[axis] - (from_extent[axis] - 1);
        for (const auto& [at_d, of_d] : d.taps)
          for (const auto& [at_h, of_h] : h.taps)
            for (const auto& [at_w, of_w] : w.taps)
              phase.taps.push_back(
                  {{at_d, at_h, at_w}, (of_d * window[1] + of_h) * window[2] + of_w});
        phases.push_back(std::move(phase));
      }
  std::stable_sort(phases.begin(), phases.end(),
                   [](const Phase& a, const Phase& b) { return a.taps.size() > b.taps.size(); });
}

std::optional<View> patches_of(const View& image, const ImplicitGemm& product) {
  const std::int64_t channels = image.dims[1], width = product.depth / channels,
                     lines = product.window[0];
  if ((channels > 1 && image.strides[1] != 1) || image.strides[3] != channels) return {};
  View view = image;
  view.dims = {image.dims[0], product.depth, lines, product.to_extent[1], product.to_extent[2]};
  view.strides = {image.strides[0], 1, image.strides[2], lines * image.strides[2],
                  width * image.strides[3]};
  return view;
}

ImplicitGemm ImplicitGemm::with_padded_lines() const {
  ImplicitGemm longer = *this;
  for (Phase& phase : longer.phases) {
    for (const std::size_t axis : {1, 2}) {
      std::int64_t furthest = 0;
      for (const Tap& tap : phase.taps) furthest = std::max(furthest, tap.offset[axis]);
      // A window that leaves its line at the end is outside of the image, and so is the begin of
      // the next line, where it continues.
      const std::int64_t lower = phase.lower[axis], extent = phase.extent[axis];
      phase.extent[axis] = std::max({extent, from_extent[axis] - lower, lower + extent + furthest});
      phase.upper[axis] = lower + phase.extent[axis] - from_extent[axis];
    }
    for (Tap& tap : phase.taps)
      tap.offset = {tap.offset[0], 0, tap.offset[1] * phase.extent[2] + tap.offset[2]};
  }
  return longer;
}

std::int64_t ImplicitGemm::Phase::planes() const {
  std::int64_t count = 0, before = -1;
  for (const Tap& tap : taps) {
    count += tap.offset[0] != before;
    before = tap.offset[0];
  }
  return count;
}

double ImplicitGemm::outside() const {
  const Phase& phase = phases.at(0);
  if (phase.taps.empty()) return 0;
  double inside = 0;  // taps, each weighted by the share of pixels that see it inside
  for (const Tap& tap : phase.taps) {
    double share = 1;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const std::int64_t begin = phase.lower[axis] + tap.offset[axis];
      const std::int64_t first = std::max<std::int64_t>(ceil_div(-begin, step[axis]), 0);
      const std::int64_t last = (from_extent[axis] - 1 - begin) / step[axis];
      const std::int64_t count = std::min(last, phase.extent[axis] - 1) - first + 1;
      const bool ends_before = from_extent[axis] - 1 < begin;
      share *= ends_before ? 0
                           : static_cast<double>(std::max<std::int64_t>(count, 0)) /
                                 static_cast<double>(phase.extent[axis]);
    }
    inside += share;
  }
  return 1 - inside / static_cast<double>(phase.taps.size());
}

std::int64_t ImplicitGemm::reach() const {
  std::int64_t furthest = 0;
  for (const Phase& phase : phases)
    for (const Tap& tap : phase.taps) furthest = std::max(furthest, tap.offset[2]);
  return furthest;
}

bool ImplicitGemm::is_pointwise() const {
  const Axes none = {0, 0, 0}, one = {1, 1, 1};
  return window == one && phases.size() == 1 && step == one && phases[0].lower == none &&
         from_extent == to_extent;
}

}  // namespace ashlar::cuda
