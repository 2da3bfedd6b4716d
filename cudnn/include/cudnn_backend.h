/* The graph API under its traditional header name. */
#ifndef ASHLAR_CUDNN_BACKEND_H
#define ASHLAR_CUDNN_BACKEND_H

#include "cudnn_graph.h"

#endif /* ASHLAR_CUDNN_BACKEND_H */
