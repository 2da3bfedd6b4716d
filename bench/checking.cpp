#include "checking.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ashlar/check.hpp>
#include <cmath>

#include "counts.hpp"

namespace ashlar::bench {

namespace {

// Operations. The oracle computes about 1e8 per second.
constexpr double kQuickForOracleOnHost = 5e8;

// Allowed difference of two correct results, relative to |value| + RMS of the tensor: a few
// roundings of the result and of reductions as long as those of the suites.
double tolerance(DType dtype) {
  switch (dtype) {
    case DType::f32: return 1e-4;
    case DType::f16: return 0x1p-9;
    case DType::bf16: return 0x1p-7;
    case DType::e4m3: return 0x1p-3;
    case DType::e5m2: return 0x1p-2;
    default: return 0;
  }
}

struct Agreement {
  std::vector<std::string> missing;  // outputs that oneDNN does not compute
  double worst = 0;                  // largest difference, in units of the tolerance
};

// Largest difference in tolerances; ours(i) and theirs(i) read element i < count.
template <class Ours, class Theirs>
double worst_of(DType dtype, std::int64_t count, const Ours& ours, const Theirs& theirs) {
  double squares = 0;
#ifndef ASHLAR_NO_OPENMP
#pragma omp parallel for reduction(+ : squares)
#endif
  for (std::int64_t i = 0; i < count; ++i) squares += theirs(i) * theirs(i);
  const double typical = std::sqrt(squares / static_cast<double>(std::max<std::int64_t>(count, 1)));
  double worst = 0;
#ifndef ASHLAR_NO_OPENMP
#pragma omp parallel for reduction(max : worst)
#endif
  for (std::int64_t i = 0; i < count; ++i) {
    const double value = theirs(i);
    const double difference = std::abs(ours(i) - value);
    if (difference == 0) continue;
    const double share = difference / (tolerance(dtype) * (std::abs(value) + typical));
    if (!(share <= worst)) worst = std::isnan(share) ? HUGE_VAL : share;
  }
  return worst;
}

// Both sides are dense in the tensor's layout, so elements are compared in memory order.
double difference_in_memory(const Tensor& tensor, const void* ours, const void* theirs) {
  Tensor flat = tensor;
  flat.dims = {element_count(tensor.dims)};
  flat.strides = {1};
  const auto reader = [&](const void* data) {
    return [&flat, data](std::int64_t i) { return read_element(flat, data, i); };
  };
  return worst_of(tensor.dtype, flat.dims[0], reader(ours), reader(theirs));
}

Agreement agreement(const Graph& graph, const Memory& memory, const Peer* peer) {
  Agreement result;
  for (const TensorId id : graph.bound_tensors()) {
    const Tensor& tensor = graph.tensor(id);
    if (tensor.kind != TensorKind::output) continue;
    const void* theirs = peer ? peer->output(id) : nullptr;
    if (theirs)
      result.worst = std::max(result.worst, difference_in_memory(tensor, memory.at(id), theirs));
    else
      result.missing.push_back(tensor.name);
  }
  return result;
}

}  // namespace

double worst_difference(DType dtype, std::span<const double> ours, std::span<const double> theirs) {
  const auto reader = [](std::span<const double> values) {
    return [values](std::int64_t i) { return values[static_cast<std::size_t>(i)]; };
  };
  return worst_of(dtype, std::ssize(theirs), reader(ours), reader(theirs));
}

Verdict ask_oracle(const Graph& graph, const Memory& memory, const PlanNotes& notes) {
  const std::vector<const void*> readable(memory.on_host().begin(), memory.on_host().end());
  double worst = 0;
  for (const Expected& expected : evaluate_reference(graph, readable, notes)) {
    const Comparison comparison =
        expected.compare(graph.tensor(expected.tensor), memory.at(expected.tensor));
    if (comparison.worst_error > 0)
      worst = std::max(worst, comparison.worst_error / comparison.worst_bound);
    if (!comparison.ok) return {false, "WRONG: " + comparison.summary};
  }
  return {true, fmt::format("oracle, worst error {:.2g} of its bound", worst)};
}

Verdict check(const Graph& graph, const Memory& memory, const Peer* peer, bool oracle) {
  if (oracle) return ask_oracle(graph, memory, {});
  const Agreement found = agreement(graph, memory, peer);
  const bool agreed = found.worst <= 1;
  if (agreed && found.missing.empty())
    return {true, fmt::format("oneDNN, worst difference {:.2g} of the tolerance", found.worst)};
  if (!agreed || std::max(arithmetic(graph), traffic(graph)) <= kQuickForOracleOnHost)
    return ask_oracle(graph, memory, {});
  return {true, fmt::format("{}not checked: {}",
                            peer ? fmt::format("oneDNN, worst difference {:.2g} of the tolerance; ",
                                               found.worst)
                                 : "",
                            fmt::join(found.missing, ", "))};
}

}  // namespace ashlar::bench
