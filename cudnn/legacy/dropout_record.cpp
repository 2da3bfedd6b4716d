#include "legacy/dropout_record.hpp"

#include <algorithm>
#include <array>

#include "legacy/call.hpp"

namespace ashlar::cudnn {

double probability_of(cudnnDropoutDescriptor_t dropout, const char* parameter) {
  // The smallest value drawn is 2^-24.
  constexpr double kKeepNothing = 1.0 - 0x1p-30;
  if (dropout == nullptr) return 0.0;
  return std::min(static_cast<double>(dropout_of(dropout, parameter).probability), kKeepNothing);
}

void record_draws(cudnnHandle_t handle, cudnnDropoutDescriptor_t dropout, const char* parameter,
                  std::int64_t elements, void* record) {
  const cudnnDropoutStruct& descriptor = dropout_of(dropout, parameter);
  Call call(handle, "dropout_record");
  call.compile([](Graph& graph) {
    // As bytes, which every engine copies bit by bit.
    const Value state = graph.input("state", {kDropoutStatesBytes}, u8);
    graph.output("record", graph.pointwise(PointwiseMode::identity, std::array{state}));
  });
  call.bind("state", state_of(descriptor).seed).bind("record", record).run();
  advance(handle, descriptor, elements);
}

}  // namespace ashlar::cudnn
