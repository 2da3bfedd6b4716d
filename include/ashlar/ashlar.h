/* The C API: graphs, plans, engines and the reference oracle, feature for feature as in C++.
 *
 * Errors: every function that can fail returns an ashlar_status. After a failure
 * ashlar_last_error() returns a message that names the argument, the value found and the value
 * expected. A failed call changes neither its inputs nor its output parameters. A null handle or
 * pointer is ASHLAR_INVALID_ARGUMENT.
 *
 * Text results: at most `capacity` bytes, including the terminating zero, are written to `buffer`.
 * `*needed` (may be null) receives the size of the whole text in bytes, including the terminating
 * zero. Pass a null buffer and capacity 0 to query the size. If the buffer is too small, the call
 * returns ASHLAR_INVALID_ARGUMENT and sets only `*needed`.
 *
 * Versioning: a struct that begins with `size` must have it set to sizeof(the struct); its _init
 * function does that. A newer library accepts the structs of an older one.
 *
 * Enumerations are 32-bit integers: an unknown value is an error, not undefined behaviour.
 *
 * Ownership: each _create, _clone, _from_json and _compile call returns a handle that the caller
 * releases with the matching _destroy function.
 *
 * Threads: a graph or node may be used by one thread at a time. A plan is immutable: any number of
 * threads may run it concurrently, each with its own workspace. The last error is per thread.
 */
#ifndef ASHLAR_ASHLAR_H
#define ASHLAR_ASHLAR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

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

/* --- the library */

const char* ashlar_version(void); /* "0.1.0" */
const char* ashlar_status_name(ashlar_status status);
/* The message of this thread's last failed call; "" if none has failed. The pointer is valid until
 * the next failed call of this thread. */
const char* ashlar_last_error(void);

/* --- tensors */

typedef struct ashlar_tensor {
  size_t size;
  const char* name; /* null: generated. In results: owned by the graph, valid until it changes */
  int64_t uid;      /* 0: generated */
  ashlar_tensor_kind kind;
  ashlar_dtype dtype;
  ashlar_layout layout; /* in results ASHLAR_STRIDES, or ASHLAR_ROW_MAJOR before inference */
  int32_t rank;         /* 0: inferred by the operation that computes the tensor */
  int64_t dims[ASHLAR_MAX_RANK];
  int64_t strides[ASHLAR_MAX_RANK]; /* in elements */
  double value;                     /* constants only */
  int32_t ragged_offset;            /* id of the tensor of batch offsets, or ASHLAR_NO_TENSOR */
} ashlar_tensor;

/* Sets the defaults: an intermediate whose dtype, dims and strides are inferred. */
void ashlar_tensor_init(ashlar_tensor* tensor);

/* --- graphs */

ashlar_status ashlar_graph_create(const char* name, ashlar_graph** graph);
ashlar_status ashlar_graph_from_json(const char* text, size_t length, ashlar_graph** graph);
ashlar_status ashlar_graph_clone(const ashlar_graph* graph, ashlar_graph** copy);
void ashlar_graph_destroy(ashlar_graph* graph); /* null is ignored */

ashlar_status ashlar_graph_to_json(const ashlar_graph* graph, char* buffer, size_t capacity,
                                   size_t* needed);
ashlar_status ashlar_graph_to_text(const ashlar_graph* graph, char* buffer, size_t capacity,
                                   size_t* needed);
ashlar_status ashlar_graph_validate(const ashlar_graph* graph);
ashlar_status ashlar_graph_hash(const ashlar_graph* graph, uint64_t* hash);

ashlar_status ashlar_graph_add_tensor(ashlar_graph* graph, const ashlar_tensor* tensor,
                                      int32_t* id);
ashlar_status ashlar_graph_tensor_count(const ashlar_graph* graph, int32_t* count);
ashlar_status ashlar_graph_get_tensor(const ashlar_graph* graph, int32_t id, ashlar_tensor* tensor);
/* ASHLAR_INVALID_ARGUMENT when the graph has no tensor of that name. */
ashlar_status ashlar_graph_find_tensor(const ashlar_graph* graph, const char* name, int32_t* id);
/* Size in bytes of the memory to bind: up to and including the last element, gaps of strides
 * included. A ragged tensor counts as padded to its longest sequence. */
ashlar_status ashlar_graph_tensor_bytes(const ashlar_graph* graph, int32_t id, int64_t* bytes);
ashlar_status ashlar_graph_set_uid(ashlar_graph* graph, int32_t id, int64_t uid);
ashlar_status ashlar_graph_set_ragged(ashlar_graph* graph, int32_t id, int32_t offsets);

/* --- nodes: set attributes and operands by name, then add the node to a graph. docs/ops/ lists the
 * operands and attributes of each operation. */

ashlar_status ashlar_node_create(const char* op, const char* name, ashlar_node** node);
void ashlar_node_destroy(ashlar_node* node); /* null is ignored */

ashlar_status ashlar_node_set_int(ashlar_node* node, const char* attribute, int64_t value);
ashlar_status ashlar_node_set_double(ashlar_node* node, const char* attribute, double value);
ashlar_status ashlar_node_set_bool(ashlar_node* node, const char* attribute, int value);
ashlar_status ashlar_node_set_ints(ashlar_node* node, const char* attribute, const int64_t* values,
                                   int32_t count);
/* For enumerations the name used in JSON ("relu_fwd", "bottom_right"); for score programs their
 * JSON list of steps. */
ashlar_status ashlar_node_set_string(ashlar_node* node, const char* attribute, const char* value);
ashlar_status ashlar_node_set_compute(ashlar_node* node, ashlar_dtype dtype);

ashlar_status ashlar_node_set_input(ashlar_node* node, const char* operand, int32_t tensor);
/* Appends an input to a variadic operation (concat). */
ashlar_status ashlar_node_append_input(ashlar_node* node, const char* operand, int32_t tensor);
ashlar_status ashlar_node_set_output(ashlar_node* node, const char* operand, int32_t tensor);

/* Infers output shapes and dtypes, validates, and adds a copy of the node. The caller keeps the
 * node and may change it and add it again. */
ashlar_status ashlar_graph_add_node(ashlar_graph* graph, const ashlar_node* node, int32_t* id);
ashlar_status ashlar_graph_node_count(const ashlar_graph* graph, int32_t* count);
/* Returns a copy of a node of the graph, which the caller destroys. */
ashlar_status ashlar_graph_get_node(const ashlar_graph* graph, int32_t id, ashlar_node** node);
/* The string is owned by the node and valid until the node is destroyed. */
ashlar_status ashlar_node_op(const ashlar_node* node, const char** op);
ashlar_status ashlar_node_name(const ashlar_node* node, const char** name);
/* ASHLAR_NO_TENSOR if an optional operand is absent. `index` is the position within a variadic
 * operand, else 0. */
ashlar_status ashlar_node_get_input(const ashlar_node* node, const char* operand, int32_t index,
                                    int32_t* tensor);
ashlar_status ashlar_node_get_output(const ashlar_node* node, const char* operand, int32_t* tensor);

/* --- devices and engines. A null device name means "cpu". */

ashlar_status ashlar_device_count(int32_t* count);
ashlar_status ashlar_device_name(int32_t index, char* buffer, size_t capacity, size_t* needed);
ashlar_status ashlar_device_present(const char* device, int* present);

typedef int32_t ashlar_engine_field;
enum { ASHLAR_ENGINE_ID = 0, ASHLAR_ENGINE_KIND, ASHLAR_ENGINE_DESCRIPTION };
ashlar_status ashlar_engine_count(const char* device, int32_t* count);
ashlar_status ashlar_engine_text(const char* device, int32_t index, ashlar_engine_field field,
                                 char* buffer, size_t capacity, size_t* needed);

/* --- plans */

typedef struct ashlar_compile_options {
  size_t size;
  const char* device;      /* null: "cpu". The other members: see ashlar::CompileOptions */
  int32_t deterministic;   /* default 0 */
  int32_t allow_tf32;      /* default 1 */
  int32_t fuse;            /* default 1 */
  int32_t reference_only;  /* default 0 */
  int32_t guard;           /* default 0 */
  int64_t workspace_limit; /* bytes; default: unlimited */
  int32_t allow_winograd;  /* default 1 */
} ashlar_compile_options;
void ashlar_compile_options_init(ashlar_compile_options* options);

typedef struct ashlar_plan_notes {
  size_t size;
  int32_t deterministic;
  int32_t tf32;
  int32_t reduced_precision_accumulation;
  int32_t runtime_compiled;
  int32_t winograd; /* output pixels per tile and axis; 0: no Winograd convolution */
  int32_t truncating_accumulation;
} ashlar_plan_notes;
void ashlar_plan_notes_init(ashlar_plan_notes* notes);

/* Null options select the defaults. The plan holds its own copy of the graph. */
ashlar_status ashlar_compile(const ashlar_graph* graph, const ashlar_compile_options* options,
                             ashlar_plan** plan);
/* Text that describes the regions, engines and configurations ashlar_compile would select. The
 * device need not be present. */
ashlar_status ashlar_explain(const ashlar_graph* graph, const ashlar_compile_options* options,
                             char* buffer, size_t capacity, size_t* needed);
ashlar_status ashlar_plan_from_json(const char* text, size_t length, ashlar_plan** plan);
void ashlar_plan_destroy(ashlar_plan* plan); /* null is ignored */

ashlar_status ashlar_plan_to_json(const ashlar_plan* plan, char* buffer, size_t capacity,
                                  size_t* needed);
ashlar_status ashlar_plan_explain(const ashlar_plan* plan, char* buffer, size_t capacity,
                                  size_t* needed);
ashlar_status ashlar_plan_workspace_size(const ashlar_plan* plan, int64_t* bytes);
ashlar_status ashlar_plan_owned_bytes(const ashlar_plan* plan, int64_t* bytes);
ashlar_status ashlar_plan_region_count(const ashlar_plan* plan, int32_t* count);
ashlar_status ashlar_plan_get_notes(const ashlar_plan* plan, ashlar_plan_notes* notes);

/* The tensors that ashlar_plan_run needs pointers for, in binding order. */
ashlar_status ashlar_plan_bound_count(const ashlar_plan* plan, int32_t* count);
/* The description of a bound tensor; its strings are owned by the plan. */
ashlar_status ashlar_plan_bound_tensor(const ashlar_plan* plan, int32_t index,
                                       ashlar_tensor* tensor);
ashlar_status ashlar_plan_bound_bytes(const ashlar_plan* plan, int32_t index, int64_t* bytes);

/* `workspace`: ashlar_plan_workspace_size bytes, 64-byte aligned; null if that size is 0. `stream`:
 * a CUstream, null for the default stream; ignored on the CPU. */
ashlar_status ashlar_plan_run(const ashlar_plan* plan, void* const* pointers, int32_t count,
                              void* workspace, void* stream);
ashlar_status ashlar_plan_run_by_uid(const ashlar_plan* plan, const int64_t* uids,
                                     void* const* pointers, int32_t count, void* workspace,
                                     void* stream);

/* --- the reference oracle */

typedef struct ashlar_comparison {
  size_t size;
  int32_t ok; /* 1 if every element is within its error bound */
  int32_t tensor;
  int64_t compared;
  int64_t mismatches;
  int64_t worst_index; /* row-major, of the largest ratio error / bound */
  double worst_error;
  double worst_bound;
} ashlar_comparison;
void ashlar_comparison_init(ashlar_comparison* comparison);

/* Evaluates the graph in double precision on host memory and returns one output. `pointers` are in
 * binding order: inputs, scalars and outputs in order of creation. `values` and `bounds` (either
 * may be null) receive `count` doubles each, row-major; `count` must be the number of elements of
 * the output. A complex element counts as two, here and below: real part, then imaginary part. */
ashlar_status ashlar_reference(const ashlar_graph* graph, const void* const* pointers,
                               int32_t pointer_count, int32_t output, double* values,
                               double* bounds, int64_t count);
/* Evaluates every output, compares it with the memory of its output pointer and reports the output
 * with the largest ratio of error to bound; `buffer` receives a one-line summary. A mismatch is
 * reported in `worst`, not as an error status. For results of a plan use ashlar_check_plan: its
 * bounds account for the plan's notes (tf32, Winograd, reduced-precision accumulation). */
ashlar_status ashlar_check(const ashlar_graph* graph, const void* const* pointers,
                           int32_t pointer_count, ashlar_comparison* worst, char* buffer,
                           size_t capacity, size_t* needed);
ashlar_status ashlar_check_plan(const ashlar_plan* plan, const void* const* pointers,
                                int32_t pointer_count, ashlar_comparison* worst, char* buffer,
                                size_t capacity, size_t* needed);

/* Element access by row-major index: applies strides and converts the dtype. ashlar_fill_random
 * fills all elements from `seed`, uniform in [low, high], rounded to the dtype. */
ashlar_status ashlar_read_element(const ashlar_graph* graph, int32_t tensor, const void* data,
                                  int64_t index, double* value);
ashlar_status ashlar_write_element(const ashlar_graph* graph, int32_t tensor, void* data,
                                   int64_t index, double value);
ashlar_status ashlar_fill_random(const ashlar_graph* graph, int32_t tensor, void* data,
                                 uint64_t seed, double low, double high);

#ifdef __cplusplus
}
#endif

#endif
