// A graph compiled for the CPU, run on random data and compared with the oracle.
#pragma once

#include <gtest/gtest.h>

#include <ashlar/ashlar.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace ashlar::cpu {

class PlanCheck {
 public:
  explicit PlanCheck(Graph graph);

  void fill(std::string_view name, double low, double high);  // fresh random values
  void set(std::string_view name, const std::vector<double>& row_major_values);
  std::vector<double> get(std::string_view name) const;

  // Compiles, expects `engine` to run one of the regions, runs twice with guard bytes around every
  // booking, expects equal bits and results within the oracle's bounds.
  void expect_agrees(std::string_view engine, CompileOptions options = {},
                     const Device& device = Device::cpu());
  // Compares memory as it is with the oracle, which allows what `notes` says.
  void expect_within_bounds(const std::string& context, const PlanNotes& notes = {});

  const Graph& graph() const { return graph_; }

 private:
  std::size_t slot(std::string_view name) const;
  std::vector<const void*> readable() const;

  Graph graph_;
  std::vector<TensorId> bound_;
  std::vector<std::vector<std::byte>> memory_;  // by position in bound_
  std::uint64_t seed_ = 1;
};

// Dtypes and layouts the engine tests walk through.
inline constexpr DType kFloats[] = {f64, f32, f16, bf16};

}  // namespace ashlar::cpu
