#include "cudnn_peer.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace ashlar::bench::cudnn {

namespace {

bool draws_random_numbers(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const Node& node) {
    return std::holds_alternative<Rng>(node.op) || std::holds_alternative<DropoutForward>(node.op);
  });
}

class CudnnPeer final : public Peer {
 public:
  CudnnPeer(const Library& library, const PeerProblem& problem)
      : library_(library),
        graph_(problem.graph),
        bindings_(problem.graph, problem.pointers, library.device()),
        comparable_(!draws_random_numbers(problem.graph)) {}

  // Greedy partition: from the front, the longest subgraph that the library supports, each time.
  // Throws Refused at a node that it does not support at all.
  void partition(const SearchLimits& limits) {
    const std::size_t count = graph_.nodes().size();
    for (std::size_t first = 0; first < count;) {
      std::size_t last = count;
      std::string reason;
      for (; last > first; --last) {
        Fastest fastest(library_.device());
        const Subgraph subgraph{graph_, first, last};
        consider_backend(library_, subgraph, bindings_, limits, fastest);
        consider_legacy(library_, subgraph, bindings_, fastest);
        if (fastest.found()) {
          timed_ += fastest.timed();
          pieces_.push_back(fastest.take());
          break;
        }
        reason = fastest.reason();
        if (whole_refusal_.empty()) whole_refusal_ = reason;
      }
      if (last == first) throw Refused(fmt::format("node {} of {}: {}", first + 1, count, reason));
      first = last;
    }
    describe();
  }

  void start() override {}
  void run() override {
    for (const auto& piece : pieces_) piece->run();
  }
  void finish() override {}
  const void* output(TensorId tensor) const override {
    return comparable_ ? bindings_.output(tensor) : nullptr;
  }
  const std::string& description() const override { return description_; }
  std::size_t kernels() const override { return pieces_.size(); }

 private:
  void describe() {
    std::vector<std::string> parts;
    for (const auto& piece : pieces_) parts.push_back(piece->description());
    if (pieces_.size() > 1) description_ = fmt::format("{} calls: ", pieces_.size());
    description_ += fmt::format("{}, best of {}", fmt::join(parts, ", "), timed_);
    if (pieces_.size() > 1) description_ += fmt::format(" (as one: {})", whole_refusal_);
  }

  const Library& library_;
  const Graph& graph_;
  Bindings bindings_;
  const bool comparable_;
  std::vector<std::unique_ptr<Piece>> pieces_;
  int timed_ = 0;  // plans
  std::string whole_refusal_, description_;
};

}  // namespace

PeerAnswer fastest_peer(const Library& library, const PeerProblem& problem, SearchLimits limits) {
  limits.tf32 = problem.tf32;
  try {
    auto peer = std::make_unique<CudnnPeer>(library, problem);
    peer->partition(limits);
    return {std::move(peer), {}};
  } catch (const Refused& refusal) {
    return {nullptr, refusal.what()};
  }
}

}  // namespace ashlar::bench::cudnn
