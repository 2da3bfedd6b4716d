// Functions that NVIDIA's libcudnn.so.9 exports but declares in no header. Their parameters are not
// public; programs only need the symbols to resolve.
#pragma once

#include <cudnn.h>

extern "C" {
cudnnStatus_t cudnnGetBackdoor(void);
cudnnStatus_t cudnnSetBackdoor(void);
cudnnStatus_t cudnnSetBackdoorEx(void);
cudnnStatus_t cudnnGetRNNDropoutLocationsInternal(void);
}
