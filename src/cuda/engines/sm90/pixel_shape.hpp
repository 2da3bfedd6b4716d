// A convolution as kernels/sm90/load_im2col.cuh wants it: where its operands lie, or are brought
// first, and how its results are walked.
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
  std::optional<ComputedPixels> computed;  // of which `pixels` then has only the form
  RepackedOperand filters;                 // (contiguous, taps, other): strides only
  bool columns_contiguous;  // filters: the product's columns are contiguous, not its depth
  bool pointwise;           // pixels lie as rows of a matrix, at one distance
  bool swap;                // results have contiguous pixels: rows of the product are filters
  // Its last axis is the columns of the product. With one phase, the axes before it are those of
  // the rows, or (images, channels, pixels) where swapped and `whole`; else all axes of an image.
  PointwiseProgram epilogue;
  bool whole = true;
  int vector = 1;  // columns at a time

  std::int64_t pixel_count(const ImplicitGemm::Phase& phase) const {
    return product.images * phase.pixels_of_image();
  }
  std::int64_t scratch_bytes() const { return pixels.scratch_bytes + filters.scratch_bytes; }
  double moved_bytes() const { return pixels.moved_bytes + filters.moved_bytes; }
  // With lines as windows in shared memory want them; nothing where they cannot be had. With one
  // tap they are as they were.
  std::optional<PixelShape> with_windows() const;
  // What the axes of the result are, `rank` of them.
  std::vector<TailAxis> axes(int rank) const;
  bool has_one_tap() const {
    return product.phases.size() == 1 && product.phases[0].taps.size() == 1;
  }
  // Bytes of depth that a stage may hold of a row: 128, 64, 32, the best first.
  std::vector<int> depths() const;

  TensorMapForm pixel_map(const ImplicitGemm::Phase& phase, int tile, int depth_bytes) const;
  TensorMapForm filter_map(int tile, int depth_bytes) const;
  // Of the first result, in the boxes of lib/epilogue_tma_store.cuh; nothing where its rows are not
  // those of the product, one after the other. The same for what the epilogue reads.
  std::optional<TensorMapForm> result_map() const;
  std::optional<TensorMapForm> row_map(View rows, int box_rows) const;
};

// Whether a PixelShape can be made of the region and the copy engine takes it.
Support is_pixel_shape(const Region& region);

}  // namespace ashlar::cuda
