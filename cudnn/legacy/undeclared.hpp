// Functions that libcudnn.so.9 exports without declaring them in a header. What they take is not
// public; programs only need the names to be there.
#pragma once

#include <cudnn.h>

extern "C" {
cudnnStatus_t cudnnGetBackdoor(void);
cudnnStatus_t cudnnSetBackdoor(void);
cudnnStatus_t cudnnSetBackdoorEx(void);
cudnnStatus_t cudnnGetRNNDropoutLocationsInternal(void);
}
