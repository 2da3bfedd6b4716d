// A convolution as kernels/sm90/load_im2col.cuh loads it: layout of its operands, repacked first
// where necessary, and the epilogue's space.
#pragma once

#include <optional>

#include "cuda/engines/gemm_tails.hpp"
#include "cuda/engines/implicit_gemm.hpp"
#include "cuda/engines/repacked_operand.hpp"
#include "cuda/engines/sm90/computed_pixels.hpp"
#include "cuda/launch/tensor_map.hpp"

namespace ashlar::cuda {

struct PixelShape {
  explicit PixelShape(const Region& region);

  ImplicitGemm product;
  DType pixel_type, filter_type;
  RepackedOperand pixels;                  // [images, channels, spatial...], channels contiguous
  std::optional<ComputedPixels> computed;  // `pixels` then has only the layout
  RepackedOperand filters;                 // (contiguous, taps, other): strides only
  bool columns_contiguous;  // filters: contiguous along the GEMM's columns, not along K
  bool pointwise;           // pixels are rows of a matrix with a uniform stride
  bool swap;                // results have contiguous pixels: GEMM rows are filters
  // Its last axis is the GEMM's columns. With one phase, the axes before it are those of the rows,
  // or (images, channels, pixels) where swapped and `whole`; otherwise all axes of an image.
  PointwiseProgram epilogue;
  bool whole = true;
  int vector = 1;  // columns at a time

  std::int64_t pixel_count(const ImplicitGemm::Phase& phase) const {
    return product.images * phase.pixels_of_image();
  }
  std::int64_t scratch_bytes() const { return pixels.scratch_bytes + filters.scratch_bytes; }
  double moved_bytes() const { return pixels.moved_bytes + filters.moved_bytes; }
  // With lines padded as halo windows need them; nothing where that is not possible. Unchanged with
  // one tap.
  std::optional<PixelShape> with_windows() const;
  // The roles of the `rank` axes of the result.
  std::vector<TailAxis> axes(int rank) const;
  bool has_one_tap() const {
    return product.phases.size() == 1 && product.phases[0].taps.size() == 1;
  }
  // Bytes of K that a stage may hold per row: 128, 64, 32, the best first.
  std::vector<int> depths() const;

  TensorMapForm pixel_map(const ImplicitGemm::Phase& phase, int tile, int depth_bytes) const;
  TensorMapForm filter_map(int tile, int depth_bytes) const;
  // TMA map of the first result for lib/epilogue_tma_store.cuh; nothing where its rows are not the
  // GEMM's rows with a uniform stride. row_map: the same for a residual.
  std::optional<TensorMapForm> result_map() const;
  std::optional<TensorMapForm> row_map(View rows, int box_rows) const;
};

// Whether the region is an implicit GEMM whose operands TMA can load.
Support is_pixel_shape(const Region& region);

}  // namespace ashlar::cuda
