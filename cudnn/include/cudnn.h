/* The complete cuDNN 9.19 API, as this library implements it. */
#ifndef ASHLAR_CUDNN_H
#define ASHLAR_CUDNN_H

#include "cudnn_adv.h"
#include "cudnn_backend.h"
#include "cudnn_cnn.h"
#include "cudnn_graph.h"
#include "cudnn_ops.h"
#include "cudnn_version.h"

#endif /* ASHLAR_CUDNN_H */
