// A graph with memory, input values and the oracle's results, to check plans against.
#pragma once

#include <ashlar/check.hpp>
#include <ashlar/plan.hpp>
#include <functional>
#include <map>
#include <string>

#include "plan/plan_data.hpp"
#include "support/fill.hpp"
#include "support/test_device.hpp"

namespace ashlar::support {

class Problem {
 public:
  // `change` may overwrite the filled inputs.
  using Change = std::function<void(BoundMemory&)>;
  Problem(const Graph& graph, std::uint64_t seed, Fill fill = Fill::plain,
          const Change& change = {});

  // Outputs must equal the oracle's bit for bit: valid for linear operations on integers, except
  // with Winograd tiles of 4, whose matrices are not exact, and reduced-precision accumulation.
  void require_exact();
  // Binds each output to the memory of its input, which gets a copy of the input's elements: as a
  // caller does that declares CompileOptions::in_place.
  void share(const InPlace& pairs) { shared_ = pairs; }
  // Runs the plan once with poisoned outputs and workspace. Returns a message if an output is wrong
  // or other memory was written; empty on success.
  std::string run(const PlanData& plan);
  std::string run(const Plan& plan);

  std::int64_t elements() const { return elements_; }  // of all outputs
  std::int64_t compared() const { return compared_; }  // those with a finite bound, in the last run
  const BoundMemory& memory() const { return memory_; }
  BoundMemory& memory() { return memory_; }

 private:
  template <class AnyPlan>
  std::string run_on(const AnyPlan& plan, const DeviceProps& device, std::int64_t workspace_bytes,
                     const PlanNotes& notes);

  // Of the output, for a shared input.
  TensorId bound_as(TensorId id) const;

  BoundMemory memory_;
  const std::vector<Expected>& expected(const PlanNotes& notes);

  std::map<PlanNotes, std::vector<Expected>> expected_;
  bool exact_ = false;
  InPlace shared_;
  std::int64_t elements_ = 0, compared_ = 0;
};

// Compiles for the test device, runs and compares; returns a message on any failure.
std::string check_plan(const Graph& graph, const CompileOptions& options = {},
                       std::uint64_t seed = 1, Fill fill = Fill::plain);

}  // namespace ashlar::support
