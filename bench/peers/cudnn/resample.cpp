// Pooling and interpolation are refused: the backend's max-pooling kernel reads past the end of x
// (cuDNN 9.19 on an H200, found by compute-sanitizer) and kills the process. cudnnPooling does not:
// legacy_pooling.cpp.
#include "operation_graph.hpp"

namespace ashlar::bench::cudnn {

namespace {

[[noreturn]] void refuse() { throw Refused("the backend's resample kernels read out of bounds"); }

}  // namespace

void translate(const ResampleForward&, const Node&, OperationGraph&) { refuse(); }
void translate(const ResampleBackward&, const Node&, OperationGraph&) { refuse(); }

}  // namespace ashlar::bench::cudnn
