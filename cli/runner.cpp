#include "runner.hpp"

namespace ashlar::cli {

Runner::Runner(Plan plan, const TensorMemory& memory)
    : plan_(std::move(plan)),
      device_(plan_.device()),
      memory_(memory),
      pointers_(memory.pointers()),
      workspace_(device_, plan_.workspace_size()),
      timer_(device_) {
  if (device_.props().kind == DeviceKind::cpu) return;
  for (std::size_t i = 0; i < pointers_.size(); ++i) {
    const std::int64_t bytes = memory.buffer(i).size();
    copies_.emplace_back(device_, bytes);
    copies_[i].upload(pointers_[i], bytes);
    // Scalars are the host's.
    if (memory.graph().tensor(memory.tensors()[i]).kind != TensorKind::scalar)
      pointers_[i] = copies_[i].data();
  }
}

void Runner::run() const { plan_.run(std::span<void* const>(pointers_), workspace_.data()); }

double Runner::seconds_of_run() const {
  timer_.start();
  run();
  timer_.stop();
  return timer_.seconds();
}

std::vector<double> Runner::region_seconds() const {
  return plan_.region_seconds(pointers_, workspace_.data());
}

void Runner::download_outputs() const {
  for (std::size_t i = 0; i < copies_.size(); ++i)
    if (memory_.graph().tensor(memory_.tensors()[i]).kind == TensorKind::output)
      copies_[i].download(memory_.at(i), copies_[i].bytes());
}

}  // namespace ashlar::cli
