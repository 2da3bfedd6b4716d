// What `ashlar run --time` and `ashlar explain --time` compare a plan with.
#include <algorithm>

#include "bench.hpp"
#include "calibration.hpp"
#include "peer.hpp"

namespace ashlar::bench {

PeerProgram onednn_program(const Graph& graph, std::span<void* const> pointers) {
  PeerProgram program;
  program.name = peer_version();
  if (program.name.empty()) {
    program.name = "oneDNN";
    program.absence = "not in this build (-DASHLAR_BUILD_BENCH=ON adds it)";
    return program;
  }
  if (graph.nodes().empty()) {
    program.absence = "the graph has no operations";
    return program;
  }
  for (const Tensor& tensor : graph.tensors())
    if (tensor.ragged_offset != kNoTensor) {
      program.absence = "has no ragged tensors";
      return program;
    }
  const std::vector<std::string> no_constants;
  std::shared_ptr<Peer> peer = fastest_peer({graph, pointers, no_constants}, PeerLayouts::user);
  if (!peer) {
    program.absence = "has no primitive with post-ops for this graph";
    return program;
  }
  peer->start();
  program.implementation = peer->description();
  program.run = [peer] { peer->run(); };
  return program;
}

struct CpuCeilings::Samples {
  explicit Samples(double working_set) : copy(working_set) {}
  CopyCalibration copy;
  double flops = 0, bytes = 0;  // per second
};

CpuCeilings::CpuCeilings(double working_set_bytes)
    : samples_(std::make_unique<Samples>(working_set_bytes)) {}
CpuCeilings::~CpuCeilings() = default;
void CpuCeilings::sample() {
  samples_->flops = std::max(samples_->flops, multiply_add_rate());
  samples_->bytes = std::max(samples_->bytes, samples_->copy.rate());
}
double CpuCeilings::flops_f32() const { return samples_->flops; }
double CpuCeilings::bytes_per_second() const { return samples_->bytes; }

}  // namespace ashlar::bench
