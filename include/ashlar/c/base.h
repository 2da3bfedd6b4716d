/* The C API: status codes, errors, data types, handles. */
#ifndef ASHLAR_C_BASE_H
#define ASHLAR_C_BASE_H

#include <ashlar/version.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef int32_t ashlar_status;
enum {
  ASHLAR_OK = 0,
  ASHLAR_INVALID_GRAPH = 1,    /* the graph contradicts itself or an operation's rules */
  ASHLAR_INVALID_ARGUMENT = 2, /* an argument of the call is invalid */
  ASHLAR_SIZE_OVERFLOW = 3,    /* a size or offset does not fit into 63 bits */
  ASHLAR_PARSE = 4,            /* input data (JSON, .npy) is malformed */
  ASHLAR_IO = 5,               /* a file could not be read or written */
  ASHLAR_OUT_OF_MEMORY = 6,    /* host or device memory is exhausted */
  ASHLAR_DEVICE = 7,           /* the device or its driver reported an error */
  ASHLAR_INTERNAL = 8          /* a defect in Ashlar */
};

typedef int32_t ashlar_dtype;
enum {
  ASHLAR_DTYPE_INFER = -1, /* outputs and intermediates only: inferred by the operation */
  ASHLAR_F64 = 0,
  ASHLAR_F32,
  ASHLAR_F16,
  ASHLAR_BF16,
  ASHLAR_E4M3,
  ASHLAR_E5M2,
  ASHLAR_E8M0, /* a power of two: the scale of a block */
  ASHLAR_E2M1, /* fp4, two per byte, low nibble first */
  ASHLAR_I64,
  ASHLAR_I32,
  ASHLAR_I8,
  ASHLAR_U8,
  ASHLAR_U32,
  ASHLAR_I4, /* two per byte, low nibble first */
  ASHLAR_U4,
  ASHLAR_BOOL, /* bits, 8 per byte, least significant bit first */
  ASHLAR_COMPLEX_F32,
  ASHLAR_COMPLEX_F64
};

typedef int32_t ashlar_tensor_kind;
enum {
  ASHLAR_INPUT = 0,
  ASHLAR_OUTPUT,
  ASHLAR_INTERMEDIATE, /* an edge inside the graph ("virtual"): the caller binds no memory */
  ASHLAR_SCALAR,       /* one value, read from a host pointer by each run */
  ASHLAR_CONSTANT      /* one value, stored in the graph */
};

typedef int32_t ashlar_layout;
enum {
  ASHLAR_ROW_MAJOR = 0, /* for computed tensors without dims: inferred by the operation */
  ASHLAR_CHANNELS_LAST, /* axis 1 varies fastest (NHWC) */
  ASHLAR_STRIDES        /* explicit, in `strides` */
};

enum { ASHLAR_MAX_RANK = 8, ASHLAR_NO_TENSOR = -1 };

typedef struct ashlar_graph ashlar_graph;
typedef struct ashlar_node ashlar_node;
typedef struct ashlar_plan ashlar_plan;
typedef struct ashlar_memory ashlar_memory;
typedef struct ashlar_timer ashlar_timer;
typedef struct ashlar_trials ashlar_trials;
typedef struct ashlar_inspection ashlar_inspection;
typedef struct ashlar_bundle ashlar_bundle;
typedef struct ashlar_bundle_builder ashlar_bundle_builder;

const char* ashlar_status_name(ashlar_status status);
/* The message of this thread's last failed call; "" if none has failed. The pointer is valid until
 * the next failed call of this thread. */
const char* ashlar_last_error(void);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
