// An attribute visitor that turns values into 64-bit words: for hashes and keys.
#pragma once

#include <ashlar/ops.hpp>
#include <bit>
#include <cmath>
#include <limits>
#include <string_view>

namespace ashlar {

// `sink(std::uint64_t)` gets the words.
template <class Sink>
struct AttributeWords {
  Sink sink;

  void operator()(std::string_view, const Dims& value) { add(value); }
  void operator()(std::string_view, double value) { add(value); }
  void operator()(std::string_view, std::int64_t value) { sink(static_cast<std::uint64_t>(value)); }
  void operator()(std::string_view, bool value) { sink(value ? 1 : 0); }
  template <class T>
  void operator()(std::string_view name, const std::optional<T>& value) {
    sink(value.has_value() ? 1 : 0);
    if (value) (*this)(name, *value);
  }
  void operator()(std::string_view, const ScoreProgram& program) {
    sink(program.size());
    for (const ScoreStep& step : program) ScoreStep::attributes(step, *this);
  }
  template <class E>
  requires std::is_enum_v<E>
  void operator()(std::string_view, E value) { sink(static_cast<std::uint64_t>(value)); }

  void add(const Dims& dims) {
    sink(static_cast<std::uint64_t>(dims.rank()));
    for (std::int64_t value : dims) sink(static_cast<std::uint64_t>(value));
  }
  // All NaNs are alike.
  void add(double value) {
    sink(std::bit_cast<std::uint64_t>(std::isnan(value) ? std::numeric_limits<double>::quiet_NaN()
                                                        : value));
  }
};

}  // namespace ashlar
