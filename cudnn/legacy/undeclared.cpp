#include "legacy/undeclared.hpp"

#include "core/guarded.hpp"

using namespace ashlar::cudnn;

namespace {

// Arguments are not read: nothing says what they are.
cudnnStatus_t refuse(const char* function) {
  return guarded(function, [&] {
    fail(CUDNN_STATUS_NOT_SUPPORTED,
         "{}: got a call of a function that no header declares, expected one of cudnn.h", function);
  });
}

}  // namespace

cudnnStatus_t cudnnGetBackdoor(void) { return refuse(__func__); }
cudnnStatus_t cudnnSetBackdoor(void) { return refuse(__func__); }
cudnnStatus_t cudnnSetBackdoorEx(void) { return refuse(__func__); }
cudnnStatus_t cudnnGetRNNDropoutLocationsInternal(void) { return refuse(__func__); }
