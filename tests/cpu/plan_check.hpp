// Compiles a graph for the CPU, runs it on random data and compares it with the oracle.
#pragma once

#include <gtest/gtest.h>

#include <ashlar/ashlar.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace ashlar::cpu {

inline Layout layout_of(bool channels_are_last) {
  return channels_are_last ? channels_last : row_major;
}
// The last two axes swapped in memory.
inline Layout transposed(const Dims& dims) {
  const int rank = dims.rank();
  Dims swapped = dims;
  std::swap(swapped[rank - 1], swapped[rank - 2]);
  Dims strides = row_major.strides_for(swapped);
  std::swap(strides[rank - 1], strides[rank - 2]);
  return strides;
}

class PlanCheck {
 public:
  explicit PlanCheck(Graph graph);

  void fill(std::string_view name, double low, double high);  // new random values
  void set(std::string_view name, const std::vector<double>& row_major_values);
  std::vector<double> get(std::string_view name) const;

  // Compiles with `engine` (or any engine whose id starts with it) where it is supported, expects
  // it to run one of the regions, runs twice with guard bytes around every scratch reservation,
  // expects equal bits and results within the oracle's bounds; then repeats with every input
  // declared constant.
  void expect_agrees(std::string_view engine, CompileOptions options = {},
                     const Device& device = Device::cpu());
  // Compares the current memory with the oracle, with the tolerance that `notes` grants.
  void expect_within_bounds(const std::string& context, const PlanNotes& notes = {});

  const Graph& graph() const { return graph_; }

 private:
  void run(const Plan& plan);
  std::size_t slot(std::string_view name) const;
  std::vector<const void*> readable() const;

  Graph graph_;
  std::vector<TensorId> bound_;
  std::vector<std::vector<std::byte>> memory_;  // by index in bound_
  std::uint64_t seed_ = 1;
};

// Dtypes and layouts of the engine tests.
inline constexpr DType kFloats[] = {f64, f32, f16, bf16};

}  // namespace ashlar::cpu
