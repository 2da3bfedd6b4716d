// The enumerations of ops.hpp by name, for JSON, text and messages.
#pragma once

#include <ashlar/graph.hpp>
#include <span>
#include <string_view>

namespace ashlar {

// Names in the order of the enumerators.
std::span<const std::string_view> enum_names(ConvMode);
std::span<const std::string_view> enum_names(PointwiseMode);
std::span<const std::string_view> enum_names(ReductionMode);
std::span<const std::string_view> enum_names(ResampleMode);
std::span<const std::string_view> enum_names(PaddingMode);
std::span<const std::string_view> enum_names(NormMode);
std::span<const std::string_view> enum_names(NormPhase);
std::span<const std::string_view> enum_names(MaskAlignment);
std::span<const std::string_view> enum_names(RngDistribution);
std::span<const std::string_view> enum_names(CausalConvActivation);
std::span<const std::string_view> enum_names(MoeMode);
std::span<const std::string_view> enum_names(GridSampleMode);
std::span<const std::string_view> enum_names(GridPadding);
std::span<const std::string_view> enum_names(RnnMode);
std::span<const std::string_view> enum_names(RnnBias);
std::span<const std::string_view> enum_names(RnnInput);
std::span<const std::string_view> enum_names(RnnLayout);
std::span<const std::string_view> enum_names(CtcInput);
std::span<const std::string_view> enum_names(CtcPadding);
std::span<const std::string_view> enum_names(ScaleLayout);
std::span<const std::string_view> enum_names(IndexMode);
std::span<const std::string_view> enum_names(OutOfRange);
std::span<const std::string_view> enum_names(ScatterMode);
std::span<const std::string_view> enum_names(PadMode);
std::span<const std::string_view> enum_names(ScanMode);
std::span<const std::string_view> enum_names(RopePairs);
std::span<const std::string_view> enum_names(TensorKind);

template <class E>
std::string_view enum_name(E value) {
  return enum_names(value)[static_cast<std::size_t>(value)];
}

// Sets `value` and returns true when `name` is one of the enumerators.
template <class E>
bool parse_enum(std::string_view name, E& value) {
  const auto names = enum_names(E{});
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] != name) continue;
    value = static_cast<E>(i);
    return true;
  }
  return false;
}

bool parse_dtype(std::string_view name, DType& dtype);

}  // namespace ashlar
