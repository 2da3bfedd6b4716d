// Shapes of the parameters and statistics of a normalisation.
#pragma once

#include <ashlar/ops.hpp>

namespace ashlar {

struct NormShapes {
  Dims parameters;  // scale, bias and their gradients
  Dims statistics;  // mean, inv_variance
  // Group norm only: axis 1 of `statistics` has `groups` entries, each over channels / groups
  // channels.
};

// `axes` as normalised by inference; they matter for layer, ada_layer and rms only.
inline NormShapes norm_shapes(NormMode mode, const Dims& x, const Dims& axes, std::int64_t groups) {
  NormShapes shapes{Dims::filled(x.rank(), 1), Dims::filled(x.rank(), 1)};
  switch (mode) {
    case NormMode::layer:
    case NormMode::rms:
    case NormMode::ada_layer:
      shapes.statistics = x;
      for (std::int64_t axis : axes) {
        shapes.parameters[static_cast<int>(axis)] = x[static_cast<int>(axis)];
        shapes.statistics[static_cast<int>(axis)] = 1;
      }
      if (mode == NormMode::ada_layer) shapes.parameters[0] = x[0];
      return shapes;
    case NormMode::batch: shapes.statistics[1] = x[1]; break;
    case NormMode::instance:
      shapes.statistics[0] = x[0];
      shapes.statistics[1] = x[1];
      break;
    case NormMode::group:
      shapes.statistics[0] = x[0];
      shapes.statistics[1] = groups;
      break;
  }
  shapes.parameters[1] = x[1];
  return shapes;
}

}  // namespace ashlar
