// Runs a graph on every engine and configuration that takes one of its regions.
#pragma once

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "ops/op_case.hpp"

namespace ashlar::ops {

// What has been tried and what went wrong, over many graphs.
class EngineSweep {
 public:
  // Every engine of the test device's table is asked about every region of the graph. Those that
  // accept run it in each of their configurations, with and without guards, against the oracle.
  void visit(const OpCase& one, const Variant& variant);

  const std::vector<std::string>& failures() const { return failures_; }
  std::int64_t graphs() const { return graphs_; }
  std::int64_t plans() const { return plans_; }
  std::int64_t refusals() const { return refusals_; }
  // (engine, operation, dtype) that ran.
  const std::set<std::tuple<std::string, std::string, DType>>& combinations() const {
    return combinations_;
  }
  // Share of all output elements that had a finite bound.
  double compared_share() const;

 private:
  void sweep(const Graph& graph, const OpCase& one, const Variant& variant,
             const std::string& name);

  std::vector<std::string> failures_;
  std::int64_t graphs_ = 0, plans_ = 0, refusals_ = 0, elements_ = 0, compared_ = 0;
  std::set<std::tuple<std::string, std::string, DType>> combinations_;
};

}  // namespace ashlar::ops
