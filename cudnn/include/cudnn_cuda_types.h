/* The types of the CUDA runtime that the API uses.
 *
 * They come from the CUDA toolkit if the compiler finds it. Otherwise, or when the program defines
 * CUDNN_WITHOUT_CUDA_HEADERS, the same types are declared here, so that objects compiled either way
 * link with each other. One translation unit must not mix both. */
#ifndef ASHLAR_CUDNN_CUDA_TYPES_H
#define ASHLAR_CUDNN_CUDA_TYPES_H

#include <stddef.h>
#include <stdint.h>

#if defined(__has_include) && !defined(CUDNN_WITHOUT_CUDA_HEADERS)
#if __has_include(<cuda_runtime_api.h>) && __has_include(<library_types.h>)
#define CUDNN_HAS_CUDA_HEADERS 1
#endif
#endif

#ifdef CUDNN_HAS_CUDA_HEADERS
#include <cuda_runtime_api.h>
#include <library_types.h>
#else

typedef struct CUstream_st* cudaStream_t;
typedef struct CUgraph_st* cudaGraph_t;

/* The part of the version that cudnnGetProperty() returns. */
typedef enum libraryPropertyType_t {
  MAJOR_VERSION = 0,
  MINOR_VERSION = 1,
  PATCH_LEVEL = 2
} libraryPropertyType;

#endif

#endif /* ASHLAR_CUDNN_CUDA_TYPES_H */
