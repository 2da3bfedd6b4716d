/* The graph interface by the name that programs know it by. */
#ifndef ASHLAR_CUDNN_BACKEND_H
#define ASHLAR_CUDNN_BACKEND_H

#include "cudnn_graph.h"

#endif /* ASHLAR_CUDNN_BACKEND_H */
