#include "checking.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ashlar/check.hpp>
#include <cmath>

#include "counts.hpp"
#include "explanation.hpp"

namespace ashlar::bench {

namespace {

// The oracle does some 1e8 operations per second.
constexpr double kQuickForOracle = 5e8;
constexpr double kQuickForOracleOfDevice = 5e7;  // there are hundreds of cases

// How far two correct results may lie apart, as a share of the value plus the typical value: a few
// roundings of the result and of sums as long as those measured here.
double tolerance(DType dtype) {
  switch (dtype) {
    case DType::f32: return 1e-4;
    case DType::f16: return 0x1p-9;
    case DType::bf16: return 0x1p-7;
    default: return 0;
  }
}

struct Agreement {
  std::vector<std::string> missing;  // outputs oneDNN does not give
  double worst = 0;                  // largest difference, in units of the tolerance
};

// Both sides use the tensor's layout without gaps, so elements are compared as they lie.
double worst_difference(const Tensor& tensor, const void* ours, const void* theirs) {
  Tensor flat = tensor;
  const std::int64_t count = element_count(tensor.dims);
  flat.dims = {count};
  flat.strides = {1};
  double squares = 0;
#ifndef ASHLAR_NO_OPENMP
#pragma omp parallel for reduction(+ : squares)
#endif
  for (std::int64_t i = 0; i < count; ++i) {
    const double value = read_element(flat, theirs, i);
    squares += value * value;
  }
  const double typical = std::sqrt(squares / static_cast<double>(std::max<std::int64_t>(count, 1)));
  double worst = 0;
#ifndef ASHLAR_NO_OPENMP
#pragma omp parallel for reduction(max : worst)
#endif
  for (std::int64_t i = 0; i < count; ++i) {
    const double value = read_element(flat, theirs, i);
    const double difference = std::abs(read_element(flat, ours, i) - value);
    if (difference == 0) continue;
    const double share = difference / (tolerance(tensor.dtype) * (std::abs(value) + typical));
    if (!(share <= worst)) worst = std::isnan(share) ? HUGE_VAL : share;
  }
  return worst;
}

Agreement agreement(const Graph& graph, const Memory& memory, const Peer* peer) {
  Agreement result;
  for (const TensorId id : graph.bound_tensors()) {
    const Tensor& tensor = graph.tensor(id);
    if (tensor.kind != TensorKind::output) continue;
    const void* theirs = peer ? peer->output(id) : nullptr;
    if (theirs)
      result.worst = std::max(result.worst, worst_difference(tensor, memory.at(id), theirs));
    else
      result.missing.push_back(tensor.name);
  }
  return result;
}

Verdict ask_oracle(const Graph& graph, const Memory& memory, const PlanNotes& notes) {
  const std::vector<const void*> readable(memory.on_host().begin(), memory.on_host().end());
  double worst = 0;
  for (const Expected& expected : evaluate_reference(graph, readable, notes)) {
    const Comparison comparison =
        compare(graph.tensor(expected.tensor), memory.at(expected.tensor), expected);
    if (comparison.worst_error > 0)
      worst = std::max(worst, comparison.worst_error / comparison.worst_bound);
    if (!comparison.ok) return {false, "WRONG: " + comparison.summary};
  }
  return {true, fmt::format("oracle, worst error {:.2g} of its bound", worst)};
}

// What our engines for the processor make of the same inputs.
class ProcessorResults {
 public:
  ProcessorResults(const Graph& graph, const Problem& problem, const Memory& memory)
      : tensors_(graph.bound_tensors()),
        pointers_(memory.on_host().begin(), memory.on_host().end()) {
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      const Tensor& tensor = graph.tensor(tensors_[i]);
      if (tensor.kind != TensorKind::output) continue;
      outputs_.push_back(allocate(byte_size(tensor)));
      pointers_[i] = outputs_.back().get();
    }
    const Runner runner(graph, problem, pointers_, Device::cpu());
    known_ = !is_slow(outline_of(runner.plan().explain()));
    if (known_) runner.run();
  }
  bool known() const { return known_; }  // else they would take minutes
  const void* at(TensorId tensor) const {
    const auto found = std::find(tensors_.begin(), tensors_.end(), tensor);
    return pointers_[static_cast<std::size_t>(found - tensors_.begin())];
  }

 private:
  std::vector<TensorId> tensors_;
  std::vector<void*> pointers_;
  std::vector<Buffer> outputs_;
  bool known_ = false;
};

struct Difference {
  double worst = 0;    // in units of the tolerance
  std::string tensor;  // where it is
};

// `theirs(id)` is null for what a side does not give.
template <class Theirs, class Ours>
Difference difference(const Graph& graph, const Ours& ours, const Theirs& theirs) {
  Difference result;
  for (const TensorId id : graph.bound_tensors()) {
    const Tensor& tensor = graph.tensor(id);
    if (tensor.kind != TensorKind::output || !theirs(id) || !ours(id)) continue;
    const double worst = worst_difference(tensor, ours(id), theirs(id));
    if (worst >= result.worst) result = {worst, tensor.name};
  }
  return result;
}

}  // namespace

Verdict check(const Graph& graph, const Memory& memory, const Peer* peer, bool oracle) {
  if (oracle) return ask_oracle(graph, memory, {});
  const Agreement found = agreement(graph, memory, peer);
  const bool agreed = found.worst <= 1;
  if (agreed && found.missing.empty())
    return {true, fmt::format("oneDNN, worst difference {:.2g} of the tolerance", found.worst)};
  if (!agreed || std::max(arithmetic(graph), traffic(graph)) <= kQuickForOracle)
    return ask_oracle(graph, memory, {});
  return {true, fmt::format("{}not checked: {}",
                            peer ? fmt::format("oneDNN, worst difference {:.2g} of the tolerance; ",
                                               found.worst)
                                 : "",
                            fmt::join(found.missing, ", "))};
}

Verdict check_device(const Graph& graph, const Problem& problem, const Memory& memory,
                     const Peer* peer, const PlanNotes& notes, bool oracle) {
  const auto ours = [&](TensorId id) -> const void* { return memory.at(id); };
  const auto peers = [&](TensorId id) { return peer ? peer->output(id) : nullptr; };
  const bool gives = std::any_of(
      graph.tensors().begin(), graph.tensors().end(),
      [&](const Tensor& tensor) { return peers(graph.find_tensor(tensor.name)) != nullptr; });
  const auto of_peer = [&](const Difference& found) {
    return !gives ? std::string()
                  : fmt::format("; the peer: {:.2g} of the tolerance{}", found.worst,
                                found.worst <= 1 ? "" : " (" + found.tensor + ")");
  };
  if (oracle || std::max(arithmetic(graph), traffic(graph)) <= kQuickForOracleOfDevice) {
    Verdict verdict = ask_oracle(graph, memory, notes);
    verdict.text += of_peer(difference(graph, peers, ours));
    return verdict;
  }
  const ProcessorResults expected(graph, problem, memory);
  if (!expected.known()) {
    const Difference found = difference(graph, peers, ours);
    if (!gives) return {true, "not checked: the processor has no quick engine for it"};
    return {found.worst <= 1, fmt::format("{}the peer: {:.2g} of the tolerance ({})",
                                          found.worst <= 1 ? "" : "WRONG or the peer is: ",
                                          found.worst, found.tensor)};
  }
  const auto right = [&](TensorId id) { return expected.at(id); };
  const Difference found = difference(graph, ours, right);
  return {found.worst <= 1, fmt::format("{}our processor engines: {:.2g} of the tolerance{}{}",
                                        found.worst <= 1 ? "" : "WRONG: ", found.worst,
                                        found.worst <= 1 ? "" : " (" + found.tensor + ")",
                                        of_peer(difference(graph, peers, right)))};
}

}  // namespace ashlar::bench
