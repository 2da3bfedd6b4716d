// Windows of a u8 image as rows of an int8 GEMM: pixel x (tap, channel). Adjacent taps of a window
// are one segment of K.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/checked.hpp"
#include "cpu/conv/conv_geometry.hpp"
#include "cpu/gemm/byte_operand.hpp"
#include "cpu/gemm/gemm.hpp"
#include "cpu/gemm/int8_gemm.hpp"
#include "cpu/kernels/int8_pack.hpp"

namespace ashlar::cpu {

struct Int8ImageLayout {
  std::int64_t image_stride = 0, channel_stride = 0;  // strides of x in bytes
  Spatial stride{};                                   // strides of x in bytes
  std::int64_t channels = 0;                          // of all groups
  bool is_signed = false;
  bool in_place = false;  // else staged, channels last, with padding
  bool joined = false;    // taps along the last axis form one segment
  // Staged pixels per line; only the ones read if the window is one pixel wide.
  std::int64_t line_pixels = 0, pixel_step = 1;
  std::int64_t line_stride = 0;   // stride of staged lines in bytes
  std::int64_t line_step = 1;     // staged lines per line of y
  std::int64_t window_lines = 0;  // staged lines of a window
  std::int64_t planes = 1;        // planes of a window (3-D), interleaved line by line
  std::int64_t last_window = 1;
  std::vector<std::int64_t> segment_offsets;  // see Int8ImageRows

  Int8ImageLayout() = default;
  Int8ImageLayout(const ConvGeometry& geometry, const ByteOperand& x);

  std::int64_t taps_per_segment() const { return joined ? last_window : 1; }
  // Staged bytes per line of y, without the halo of the last window.
  std::int64_t line_bytes() const { return in_place ? 0 : planes * line_step * line_stride; }
  // Staged bytes for consecutive lines of y in one plane, and for lines that may cross planes.
  std::int64_t plane_bytes(std::int64_t lines) const {
    return ((lines - 1) * line_step + window_lines) * planes * line_stride;
  }
  std::int64_t staged_bytes(std::int64_t lines, const ConvGeometry& geometry) const {
    if (in_place) return 0;
    const std::int64_t parts = lines / std::max<std::int64_t>(geometry.y[1], 1) + 2;
    return checked_add(checked_mul(lines, line_bytes()),
                       checked_mul(parts, window_lines * planes * line_stride) + 64);
  }
};

inline Int8ImageLayout::Int8ImageLayout(const ConvGeometry& g, const ByteOperand& x)
    : image_stride(x.strides()[0]),
      channel_stride(x.strides()[1]),
      channels(g.groups * g.channels),
      is_signed(x.is_signed()),
      planes(g.window[0]),
      last_window(g.window[kMaxSpatial - 1]) {
  constexpr std::size_t kLast = kMaxSpatial - 1;
  for (int axis = g.first_axis(); axis < kMaxSpatial; ++axis)
    stride[static_cast<std::size_t>(axis)] = x.strides()[2 + axis - g.first_axis()];
  bool inside = true;  // no window touches padding
  for (std::size_t axis = 0; axis < kMaxSpatial; ++axis) {
    const std::int64_t last =
        (g.y[axis] - 1) * g.stride[axis] + (g.window[axis] - 1) * g.dilation[axis];
    inside = inside && g.padding[axis] == 0 && last < g.x[axis];
  }
  const bool may_join = g.groups == 1 && g.dilation[kLast] == 1;
  const bool lies_joined = may_join && (stride[kLast] == channels || last_window == 1);
  in_place = !is_signed && inside && channel_stride == 1 &&
             (lies_joined ? last_window * channels : g.channels) % 4 == 0;
  joined = in_place ? lies_joined : may_join;

  pixel_step = last_window == 1 ? g.stride[kLast] : 1;
  line_pixels =
      (g.y[kLast] - 1) * g.stride[kLast] / pixel_step + (last_window - 1) * g.dilation[kLast] + 1;
  // The over-read of the last quad falls into the next line, or into the extra bytes at the end.
  line_stride = (divide_up(line_pixels * channels, 64) | 1) * 64;
  line_step = std::min(g.stride[1], (g.window[1] - 1) * g.dilation[1] + 1);
  window_lines = (g.window[1] - 1) * g.dilation[1] + 1;

  for (std::int64_t d = 0; d < g.window[0]; ++d)
    for (std::int64_t h = 0; h < g.window[1]; ++h)
      for (std::int64_t w = 0; w < (joined ? 1 : last_window); ++w) {
        if (in_place)
          segment_offsets.push_back(d * g.dilation[0] * stride[0] + h * g.dilation[1] * stride[1] +
                                    w * g.dilation[kLast] * stride[kLast]);
        else  // planes are interleaved within a line, so that offsets are the same for all blocks
          segment_offsets.push_back((h * g.dilation[1] * planes + d) * line_stride +
                                    w * g.dilation[kLast] * channels);
      }
}

class Int8ImageRows final : public Int8Rows {
 public:
  Int8ImageRows(const Int8ImageLayout& layout, const ConvGeometry& geometry,
                const std::uint8_t* data)
      : layout_(layout), geometry_(geometry), data_(data) {}

  const std::int64_t* segment_offsets() const override { return layout_.segment_offsets.data(); }

  const std::uint8_t* block(std::int64_t group, std::int64_t line, std::int64_t lines,
                            std::uint8_t* buffer, std::int64_t* row_offsets) const override {
    const ConvGeometry& g = geometry_;
    const Int8ImageLayout& l = layout_;
    constexpr std::size_t kLast = kMaxSpatial - 1;
    std::int64_t used = 0;  // bytes of the buffer
    for (const std::int64_t end = line + lines; line < end;) {
      const std::int64_t row = line % g.y[1], plane = line / g.y[1] % g.y[0],
                         image = line / (g.y[0] * g.y[1]);
      const std::int64_t count = std::min(g.y[1] - row, end - line);
      std::int64_t first, line_stride, row_distance;
      if (l.in_place) {
        first = image * l.image_stride + plane * g.stride[0] * l.stride[0] +
                row * g.stride[1] * l.stride[1];
        line_stride = g.stride[1] * l.stride[1];
        row_distance = g.stride[kLast] * l.stride[kLast];
      } else {
        stage(image, plane, row, count, buffer + used);
        first = used;
        used += l.plane_bytes(count);
        line_stride = l.line_step * l.planes * l.line_stride;
        row_distance = l.channels * (g.stride[kLast] / l.pixel_step);
      }
      for (std::int64_t i = 0; i < count; ++i)
        for (std::int64_t j = 0; j < g.y[kLast]; ++j)
          *row_offsets++ = first + i * line_stride + j * row_distance;
      line += count;
    }
    return (l.in_place ? data_ : buffer) + group * g.channels;
  }

 private:
  // Stages `lines` lines of one plane of y, as (line of the window, plane of the window).
  void stage(std::int64_t image, std::int64_t plane, std::int64_t row, std::int64_t lines,
             std::uint8_t* buffer) const {
    const ConvGeometry& g = geometry_;
    const Int8ImageLayout& l = layout_;
    const std::uint8_t* source = data_ + image * l.image_stride;
    const std::int64_t count = (lines - 1) * l.line_step + l.window_lines;
    for (std::int64_t i = 0; i < count; ++i) {
      // Lines between windows that do not touch are skipped.
      const std::int64_t h =
          row * g.stride[1] - g.padding[1] +
          (g.stride[1] > l.window_lines ? i / l.window_lines * g.stride[1] + i % l.window_lines
                                        : i);
      for (std::int64_t d = 0; d < l.planes; ++d)
        stage_line(source, plane * g.stride[0] - g.padding[0] + d * g.dilation[0], h,
                   buffer + (i * l.planes + d) * l.line_stride);
    }
  }

  void stage_line(const std::uint8_t* source, std::int64_t depth, std::int64_t h,
                  std::uint8_t* target) const {
    const ConvGeometry& g = geometry_;
    const Int8ImageLayout& l = layout_;
    constexpr std::size_t kLast = kMaxSpatial - 1;
    const std::uint8_t flip = l.is_signed ? 0x80 : 0;  // the value of padding
    const auto pad = [&](std::int64_t from, std::int64_t to) {
      if (to > from)
        std::memset(target + from * l.channels, flip,
                    static_cast<std::size_t>((to - from) * l.channels));
    };
    if (depth < 0 || depth >= g.x[0] || h < 0 || h >= g.x[1]) return pad(0, l.line_pixels);
    // Staged pixels [first, last) come from x, starting at pixel `from`.
    const std::int64_t step = l.pixel_step, padding = g.padding[kLast];
    const std::int64_t first = std::min(divide_up(padding, step), l.line_pixels);
    const std::int64_t from = first * step - padding;
    const std::int64_t there = from < g.x[kLast] ? divide_up(g.x[kLast] - from, step) : 0;
    const std::int64_t last = std::min(first + there, l.line_pixels);
    pad(0, first);
    pad(last, l.line_pixels);
    if (last <= first) return;
    source += depth * l.stride[0] + h * l.stride[1] + from * l.stride[kLast];
    target += first * l.channels;
    copy_pixels(source, last - first, step * l.stride[kLast], flip, target);
  }

  void copy_pixels(const std::uint8_t* source, std::int64_t pixels, std::int64_t pixel_stride,
                   std::uint8_t flip, std::uint8_t* target) const {
    const Int8Pack& kernel = int8_pack();
    const std::int64_t channels = layout_.channels, channel_stride = layout_.channel_stride;
    if (channel_stride == 1 && pixel_stride == channels)
      return kernel.copy(source, pixels * channels, flip, target);
    if (channel_stride == 1 && channels >= 16) {
      for (std::int64_t i = 0; i < pixels; ++i)
        kernel.copy(source + i * pixel_stride, channels, flip, target + i * channels);
      return;
    }
    if (pixel_stride == 1)
      return kernel.transpose(source, channel_stride, pixels, channels, flip, target, channels);
    for (std::int64_t i = 0; i < pixels; ++i)
      for (std::int64_t c = 0; c < channels; ++c)
        target[i * channels + c] = source[i * pixel_stride + c * channel_stride] ^ flip;
  }

  const Int8ImageLayout& layout_;
  const ConvGeometry& geometry_;
  const std::uint8_t* data_;
};

}  // namespace ashlar::cpu
