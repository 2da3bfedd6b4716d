// Pooling and interpolation. The backend has them, but its kernel for maxima reads past the end of
// x (cuDNN 9.19 on an H200, found by compute-sanitizer), which ends the process. cudnnPooling does
// the same without that: legacy_pooling.cpp.
#include "operation_graph.hpp"

namespace ashlar::bench::cudnn {

namespace {

[[noreturn]] void refuse() { throw Refused("its backend reads outside of what it resamples"); }

}  // namespace

void translate(const ResampleForward&, const Node&, OperationGraph&) { refuse(); }
void translate(const ResampleBackward&, const Node&, OperationGraph&) { refuse(); }

}  // namespace ashlar::bench::cudnn
