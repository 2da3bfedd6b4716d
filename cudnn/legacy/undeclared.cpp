#include "legacy/undeclared.hpp"

#include "core/guarded.hpp"

using namespace ashlar::cudnn;

namespace {

// The arguments are not read: their meaning is not documented.
cudnnStatus_t refuse(const char* function) {
  return guarded(function, [&] {
    fail(CUDNN_STATUS_NOT_SUPPORTED,
         "{}: got a call of an undocumented function, expected one that cudnn.h declares",
         function);
  });
}

}  // namespace

cudnnStatus_t cudnnGetBackdoor(void) { return refuse(__func__); }
cudnnStatus_t cudnnSetBackdoor(void) { return refuse(__func__); }
cudnnStatus_t cudnnSetBackdoorEx(void) { return refuse(__func__); }
cudnnStatus_t cudnnGetRNNDropoutLocationsInternal(void) { return refuse(__func__); }
