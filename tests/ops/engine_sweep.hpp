// Runs a graph with every engine and configuration that supports one of its regions.
#pragma once

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "ops/op_case.hpp"

namespace ashlar::ops {

// Accumulates coverage and failures over many graphs.
class EngineSweep {
 public:
  // Queries every engine of the test device's table for every region of the graph. Supporting
  // engines run it in each of their configurations, with and without guards, against the oracle.
  void visit(const OpCase& one, const Variant& variant);

  const std::vector<std::string>& failures() const { return failures_; }
  std::int64_t graphs() const { return graphs_; }
  std::int64_t plans() const { return plans_; }
  std::int64_t refusals() const { return refusals_; }
  // (engine, operation, dtype) that ran.
  const std::set<std::tuple<std::string, std::string, DType>>& combinations() const {
    return combinations_;
  }
  // Fraction of all output elements with a finite bound.
  double compared_share() const;

 private:
  void sweep(const Graph& graph, const OpCase& one, const Variant& variant,
             const std::string& name);

  std::vector<std::string> failures_;
  std::int64_t graphs_ = 0, plans_ = 0, refusals_ = 0, elements_ = 0, compared_ = 0;
  std::set<std::tuple<std::string, std::string, DType>> combinations_;
};

}  // namespace ashlar::ops
