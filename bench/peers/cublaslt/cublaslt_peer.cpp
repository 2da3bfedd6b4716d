#include "cublaslt_peer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ashlar/memory.hpp>
#include <limits>
#include <map>
#include <optional>
#include <vector>

#include "clock.hpp"
#include "matmul.hpp"

namespace ashlar::bench::cublaslt {

namespace {

constexpr std::size_t kWorkspace = 64 << 20;  // bytes that an algorithm may use
constexpr int kTries = 3;

// An owned cublasLtMatrixLayout_t.
class OwnedLayout {
 public:
  OwnedLayout(const Library& library, const Matrix& matrix, Type type, std::int64_t batches)
      : library_(library) {
    library.check(library.call().create_layout(
                      &layout_, type, static_cast<std::uint64_t>(matrix.rows),
                      static_cast<std::uint64_t>(matrix.columns), matrix.leading_dimension),
                  "creating a matrix layout");
    const auto count = static_cast<std::int32_t>(batches);
    set(LayoutAttribute::batch_count, &count, sizeof count);
    set(LayoutAttribute::batch_stride, &matrix.batch_stride, sizeof matrix.batch_stride);
  }
  ~OwnedLayout() { library_.call().destroy_layout(layout_); }
  OwnedLayout(const OwnedLayout&) = delete;
  OwnedLayout& operator=(const OwnedLayout&) = delete;
  Layout get() const { return layout_; }

 private:
  void set(LayoutAttribute which, const void* value, std::size_t bytes) {
    library_.check(library_.call().set_layout(layout_, which, value, bytes),
                   "setting a matrix layout");
  }
  const Library& library_;
  Layout layout_ = nullptr;
};

class CublasLtPeer final : public Peer {
 public:
  CublasLtPeer(const Library& library, const PeerProblem& asked)
      : library_(library),
        problem_(describe(asked.graph, asked.tf32)),
        a_(library, problem_.a, problem_.a_type, problem_.batches),
        b_(library, problem_.b, problem_.b_type, problem_.batches),
        d_(library, problem_.d, problem_.d_type, problem_.batches),
        result_(library.device(), byte_size(asked.graph.tensor(problem_.d.tensor))),
        workspace_(library.device(), static_cast<std::int64_t>(kWorkspace)) {
    const std::vector<TensorId> tensors = asked.graph.bound_tensors();
    for (std::size_t i = 0; i < tensors.size(); ++i) pointers_[tensors[i]] = asked.pointers[i];
  }
  ~CublasLtPeer() override {
    if (matmul_) library_.call().destroy_matmul(matmul_);
  }

  // Times the algorithms that the library's heuristics propose, in their order.
  void choose(const SearchLimits& limits) {
    describe_matmul();
    const Clock::time_point start = Clock::now();
    double least = std::numeric_limits<double>::infinity();
    std::string refusal = "the heuristics propose no algorithm";
    int timed = 0;
    for (const Proposal& proposal : proposals(limits.algorithms)) {
      if (timed > 0 && seconds_since(start) > limits.seconds) break;
      if (proposal.state != 0) continue;
      try {
        const double seconds = seconds_of(proposal);
        ++timed;
        if (seconds >= least) continue;
        least = seconds;
        chosen_ = proposal;
      } catch (const Refused& refused) {
        refusal = refused.what();
      }
    }
    if (timed == 0) throw Refused(refusal);
    description_ = fmt::format("{}, best of {}", library_.version(), timed);
  }

  void start() override {}
  void run() override { multiply(chosen_); }
  void finish() override {}
  const void* output(TensorId tensor) const override {
    return tensor == problem_.d.tensor ? result_.data() : nullptr;
  }
  const std::string& description() const override { return description_; }

 private:
  void describe_matmul() {
    const Type scale = problem_.compute == Compute::f64 ? Type::f64 : Type::f32;
    library_.check(library_.call().create_matmul(&matmul_, problem_.compute, scale),
                   "creating a matmul descriptor");
    set(MatmulAttribute::transpose_a, static_cast<std::int32_t>(problem_.a.transposed));
    set(MatmulAttribute::transpose_b, static_cast<std::int32_t>(problem_.b.transposed));
    set(MatmulAttribute::epilogue, problem_.epilogue);
    if (problem_.bias != kNoTensor) {
      set(MatmulAttribute::bias, pointers_.at(problem_.bias));
      set(MatmulAttribute::bias_type, problem_.bias_type);
    }
    if (problem_.scale_a == kNoTensor) return;
    // The graph's a is the library's b.
    set(MatmulAttribute::scale_b, pointers_.at(problem_.scale_a));
    set(MatmulAttribute::scale_a, pointers_.at(problem_.scale_b));
  }
  template <class Value>
  void set(MatmulAttribute which, const Value& value) {
    library_.check(library_.call().set_matmul(matmul_, which, &value, sizeof value),
                   "setting a matmul descriptor");
  }

  std::vector<Proposal> proposals(int wanted) const {
    Preference preference = nullptr;
    library_.check(library_.call().create_preference(&preference), "creating a preference");
    std::vector<Proposal> found(static_cast<std::size_t>(wanted));
    int count = 0;
    const std::uint64_t bytes = kWorkspace;
    int error = library_.call().set_preference(preference, PreferenceAttribute::workspace_bytes,
                                               &bytes, sizeof bytes);
    if (error == 0)
      error = library_.call().propose(library_.handle(), matmul_, a_.get(), b_.get(), d_.get(),
                                      d_.get(), preference, wanted, found.data(), &count);
    library_.call().destroy_preference(preference);
    library_.check(error, "cublasLtMatmulAlgoGetHeuristic");
    found.resize(static_cast<std::size_t>(std::clamp(count, 0, wanted)));
    return found;
  }

  double seconds_of(const Proposal& proposal) {
    multiply(proposal);
    library_.device().synchronize();
    Timer timer(library_.device());
    double least = std::numeric_limits<double>::infinity();
    for (int i = 0; i < kTries; ++i) {
      timer.start();
      multiply(proposal);
      timer.stop();
      least = std::min(least, timer.seconds());
    }
    return least;
  }

  void multiply(const Proposal& proposal) const {
    const double one64 = 1, zero64 = 0;
    const float one32 = 1, zero32 = 0;
    const bool wide = problem_.compute == Compute::f64;
    const bool adds = problem_.residual != kNoTensor;
    const void* one = wide ? static_cast<const void*>(&one64) : &one32;
    const void* zero = wide ? static_cast<const void*>(&zero64) : &zero32;
    void* const c = adds ? pointers_.at(problem_.residual) : result_.data();
    library_.check(
        library_.call().matmul(library_.handle(), matmul_, one, pointers_.at(problem_.a.tensor),
                               a_.get(), pointers_.at(problem_.b.tensor), b_.get(),
                               adds ? one : zero, c, d_.get(), result_.data(), d_.get(),
                               &proposal.algorithm, workspace_.data(), kWorkspace, nullptr),
        "cublasLtMatmul");
  }

  const Library& library_;
  const Problem problem_;
  const OwnedLayout a_, b_, d_;
  const ashlar::Memory result_, workspace_;
  std::map<TensorId, void*> pointers_;
  MatmulDesc matmul_ = nullptr;
  Proposal chosen_{};
  std::string description_;
};

}  // namespace

PeerAnswer fastest_peer(const Library& library, const PeerProblem& problem,
                        const SearchLimits& limits) {
  try {
    auto peer = std::make_unique<CublasLtPeer>(library, problem);
    peer->choose(limits);
    return {std::move(peer), {}};
  } catch (const Refused& refusal) {
    return {nullptr, refusal.what()};
  }
}

}  // namespace ashlar::bench::cublaslt
