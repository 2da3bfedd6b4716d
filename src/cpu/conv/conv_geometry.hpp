// The three convolutions as implicit GEMMs over pixels, taps and channels.
//
// A "patch" tensor is read at source = pixel * scale + shift(tap), per spatial axis:
//   forward and backward-filter: pixels of y, source x,
//       source = o * stride + (r * dilation - padding)
//   backward-data: pixels of dx, source dy,
//       source = (i + padding - r * dilation) / stride, where that is an integer.
// Pixels with the same remainder of i modulo stride use the same taps, so each remainder is a
// separate GEMM (a phase) with scale 1 and no wasted work.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "plan/region.hpp"

namespace ashlar::cpu {

inline constexpr int kMaxSpatial = 3;
using Spatial = std::array<std::int64_t, kMaxSpatial>;

struct ConvTap {
  Spatial shift;   // of the source
  Spatial stored;  // position in the filter
};

// A grid of pixels with the same taps. Unused leading axes have extent 1.
struct ConvPhase {
  std::int64_t images = 0;
  Spatial extent{};          // pixels along each axis
  Spatial scale{};           // source step per pixel
  Spatial origin{}, step{};  // pixel j is coordinate origin + j * step of its own tensor
  std::vector<ConvTap> taps;

  std::int64_t pixels() const { return images * extent[0] * extent[1] * extent[2]; }
};

struct ConvGeometry {
  int spatial = 2;                                     // axes
  std::int64_t groups = 1, channels = 0, filters = 0;  // channels and filters per group
  Spatial x{}, y{}, window{};
  std::int64_t images = 0;
  Spatial padding{}, stride{}, dilation{};
  bool flip = false;
  double alpha = 1.0, beta = 0.0;

  // Any of the three convolutions, with at most three spatial axes.
  explicit ConvGeometry(const Anchor& anchor);

  ConvPhase forward_phase() const;
  ConvPhase identity_phase() const;  // dy itself: one tap
  std::vector<ConvPhase> backward_data_phases() const;
  std::int64_t tap_count() const { return window[0] * window[1] * window[2]; }

  int first_axis() const { return kMaxSpatial - spatial; }  // first used axis of Spatial
  // Coordinates of a tensor [a, b, spatial...].
  void put(std::int64_t a, std::int64_t b, const Spatial& position, std::int64_t* coords) const {
    coords[0] = a;
    coords[1] = b;
    for (int axis = first_axis(); axis < kMaxSpatial; ++axis)
      coords[2 + axis - first_axis()] = position[static_cast<std::size_t>(axis)];
  }
};

// Pixels are numbered image by image, last axis fastest.
struct ConvPixel {
  std::int64_t image;
  Spatial at;

  ConvPixel(const ConvPhase& phase, std::int64_t number) {
    for (std::size_t axis = kMaxSpatial; axis-- > 0;) {
      at[axis] = number % phase.extent[axis];
      number /= phase.extent[axis];
    }
    image = number;
  }
};

// Calls visit(pixel, length, done) for runs of pixels along the last axis; `done` counts the pixels
// before the run.
template <class Visit>
void for_pixel_runs(const ConvPhase& phase, std::int64_t start, std::int64_t count, Visit&& visit) {
  ConvPixel pixel(phase, start);
  constexpr std::size_t kLast = kMaxSpatial - 1;
  for (std::int64_t done = 0; done < count;) {
    const std::int64_t room = phase.extent[kLast] - pixel.at[kLast];
    const std::int64_t length = room < count - done ? room : count - done;
    visit(pixel, length, done);
    done += length;
    pixel.at[kLast] = 0;
    for (std::size_t axis = kLast; axis-- > 0;) {
      if (++pixel.at[axis] < phase.extent[axis]) break;
      pixel.at[axis] = 0;
      if (axis == 0) ++pixel.image;
    }
  }
}

}  // namespace ashlar::cpu
