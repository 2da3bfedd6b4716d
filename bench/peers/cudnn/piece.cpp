#include "piece.hpp"

#include <algorithm>
#include <limits>

namespace ashlar::bench::cudnn {

namespace {

constexpr int kTries = 3;

double seconds_of(Piece& piece, const Device& device) {
  piece.run();
  device.synchronize();
  Timer timer(device);
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kTries; ++i) {
    timer.start();
    piece.run();
    timer.stop();
    least = std::min(least, timer.seconds());
  }
  return least;
}

}  // namespace

Bindings::Bindings(const Graph& graph, std::span<void* const> pointers, const Device& device)
    : graph_(graph), device_(device) {
  const std::vector<TensorId> tensors = graph.bound_tensors();
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (graph.tensor(tensors[i]).kind == TensorKind::output)
      allocate(tensors[i]);
    else
      pointers_[tensors[i]] = pointers[i];
}

void* Bindings::allocate(TensorId tensor) {
  const auto [memory, is_new] =
      owned_.try_emplace(tensor, device_, byte_size(graph_.tensor(tensor)));
  return pointers_[tensor] = memory->second.data();
}

void* Bindings::at(TensorId tensor) {
  const auto found = pointers_.find(tensor);
  return found != pointers_.end() ? found->second : allocate(tensor);
}

const void* Bindings::output(TensorId tensor) const {
  const auto found = owned_.find(tensor);
  return found == owned_.end() ? nullptr : found->second.data();
}

void Fastest::consider(std::unique_ptr<Piece> piece) {
  try {
    const double seconds = seconds_of(*piece, device_);
    ++timed_;
    if (best_ && seconds >= seconds_) return;
    best_ = std::move(piece);
    seconds_ = seconds;
  } catch (const Refused& refusal) {
    refused(refusal.what());
  }
}

void Fastest::refused(const std::string& reason) {
  if (first_.empty()) first_ = reason;
  last_ = reason;
}

std::string Fastest::reason() const { return first_ == last_ ? first_ : first_ + "; " + last_; }

}  // namespace ashlar::bench::cudnn
