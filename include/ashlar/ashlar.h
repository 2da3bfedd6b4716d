/* The C API: graphs, plans, engines and the oracle, with the reach of the C++ headers.
 *
 * Every function that can fail returns an ashlar_status; ashlar_last_error() then holds a sentence
 * that says what was wrong. A failing call changes nothing and leaves its results as they were.
 * Null handles and pointers are reported, not followed.
 *
 * Text results: `buffer` takes at most `capacity` bytes with the terminating zero, and `*needed`
 * (may be null) receives the number of bytes the whole text takes with it. Call with a null buffer
 * and capacity 0 to learn the size. A buffer that is too small is ASHLAR_INVALID_ARGUMENT and stays
 * as it was, but `*needed` is set.
 *
 * Structs that begin with `size` must have it set to sizeof(the struct), which their _init function
 * does; a newer library accepts the structs of an older one.
 *
 * Enumerations are 32-bit integers, so that a wrong value is an error and not undefined behaviour.
 *
 * Threads: a graph or node is used by one thread at a time. A plan is immutable and may be run by
 * any number of threads, each with its own workspace. The last error is per thread.
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
  ASHLAR_INVALID_ARGUMENT = 2, /* a call was made with something it cannot use */
  ASHLAR_SIZE_OVERFLOW = 3,    /* a size or offset does not fit into 63 bits */
  ASHLAR_PARSE = 4,            /* outside data is malformed */
  ASHLAR_IO = 5,               /* a file could not be read or written */
  ASHLAR_OUT_OF_MEMORY = 6,    /* host or device memory is exhausted */
  ASHLAR_DEVICE = 7,           /* the device or its driver refused */
  ASHLAR_INTERNAL = 8          /* a defect in Ashlar */
};

typedef int32_t ashlar_dtype;
enum {
  ASHLAR_DTYPE_INFER = -1, /* outputs and intermediates only: what the operation gives */
  ASHLAR_F64 = 0,
  ASHLAR_F32,
  ASHLAR_F16,
  ASHLAR_BF16,
  ASHLAR_E4M3,
  ASHLAR_E5M2,
  ASHLAR_E8M0, /* a power of two: the scale of a block */
  ASHLAR_E2M1, /* fp4, two to a byte, low half first */
  ASHLAR_I64,
  ASHLAR_I32,
  ASHLAR_I8,
  ASHLAR_U8,
  ASHLAR_U32,
  ASHLAR_I4, /* two to a byte, low half first */
  ASHLAR_U4,
  ASHLAR_BOOL, /* bits, 8 to a byte, least significant first */
  ASHLAR_COMPLEX_F32,
  ASHLAR_COMPLEX_F64
};

typedef int32_t ashlar_tensor_kind;
enum {
  ASHLAR_INPUT = 0,
  ASHLAR_OUTPUT,
  ASHLAR_INTERMEDIATE, /* an edge inside the graph, without memory of the caller's */
  ASHLAR_SCALAR,       /* one value, read at run from a host pointer */
  ASHLAR_CONSTANT      /* one value, part of the graph */
};

typedef int32_t ashlar_layout;
enum {
  ASHLAR_ROW_MAJOR = 0, /* for computed tensors without dims: what the operation gives */
  ASHLAR_CHANNELS_LAST, /* axis 1 varies fastest */
  ASHLAR_STRIDES        /* as in `strides` */
};

enum { ASHLAR_MAX_RANK = 8, ASHLAR_NO_TENSOR = -1 };

typedef struct ashlar_graph ashlar_graph;
typedef struct ashlar_node ashlar_node;
typedef struct ashlar_plan ashlar_plan;

/* --- the library */

const char* ashlar_version(void); /* "0.1.0" */
const char* ashlar_status_name(ashlar_status status);
/* The sentence of this thread's last failing call; "" when none failed. Valid until the next one.
 */
const char* ashlar_last_error(void);

/* --- tensors */

typedef struct ashlar_tensor {
  size_t size;
  const char* name; /* null: chosen. As a result: the library's, valid until the graph changes */
  int64_t uid;      /* 0: chosen */
  ashlar_tensor_kind kind;
  ashlar_dtype dtype;
  ashlar_layout
      layout;   /* as a result always ASHLAR_STRIDES, or ASHLAR_ROW_MAJOR before inference */
  int32_t rank; /* 0: inferred by the operation that computes the tensor */
  int64_t dims[ASHLAR_MAX_RANK];
  int64_t strides[ASHLAR_MAX_RANK]; /* in elements */
  double value;                     /* constants only */
  int32_t ragged_offset;            /* id of the tensor of row offsets, or ASHLAR_NO_TENSOR */
} ashlar_tensor;

/* An intermediate with everything inferred. */
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
/* Bytes from the first to past the last element; for a ragged tensor as if padded. */
ashlar_status ashlar_graph_tensor_bytes(const ashlar_graph* graph, int32_t id, int64_t* bytes);
ashlar_status ashlar_graph_set_uid(ashlar_graph* graph, int32_t id, int64_t uid);
ashlar_status ashlar_graph_set_ragged(ashlar_graph* graph, int32_t id, int32_t offsets);

/* --- nodes: filled in by name, then added. docs/ops/ lists operands and attributes of each op. */

ashlar_status ashlar_node_create(const char* op, const char* name, ashlar_node** node);
void ashlar_node_destroy(ashlar_node* node); /* null is ignored */

ashlar_status ashlar_node_set_int(ashlar_node* node, const char* attribute, int64_t value);
ashlar_status ashlar_node_set_double(ashlar_node* node, const char* attribute, double value);
ashlar_status ashlar_node_set_bool(ashlar_node* node, const char* attribute, int value);
ashlar_status ashlar_node_set_ints(ashlar_node* node, const char* attribute, const int64_t* values,
                                   int32_t count);
/* Enumerations, by the name used in JSON: "relu_fwd", "bottom_right"; score programs, as their JSON
 * list of steps. */
ashlar_status ashlar_node_set_string(ashlar_node* node, const char* attribute, const char* value);
ashlar_status ashlar_node_set_compute(ashlar_node* node, ashlar_dtype dtype);

ashlar_status ashlar_node_set_input(ashlar_node* node, const char* operand, int32_t tensor);
/* One more input of an operation that takes any number of them (concat). */
ashlar_status ashlar_node_append_input(ashlar_node* node, const char* operand, int32_t tensor);
ashlar_status ashlar_node_set_output(ashlar_node* node, const char* operand, int32_t tensor);

/* Infers and checks the node and adds a copy of it. The node may be changed and added again. */
ashlar_status ashlar_graph_add_node(ashlar_graph* graph, const ashlar_node* node, int32_t* id);
ashlar_status ashlar_graph_node_count(const ashlar_graph* graph, int32_t* count);
/* A copy of a node of the graph, to look at or to change and add again. */
ashlar_status ashlar_graph_get_node(const ashlar_graph* graph, int32_t id, ashlar_node** node);
/* Library's text, valid until the node is destroyed. */
ashlar_status ashlar_node_op(const ashlar_node* node, const char** op);
ashlar_status ashlar_node_name(const ashlar_node* node, const char** name);
/* ASHLAR_NO_TENSOR where an optional operand is absent. `index` counts inside a variadic operand.
 */
ashlar_status ashlar_node_get_input(const ashlar_node* node, const char* operand, int32_t index,
                                    int32_t* tensor);
ashlar_status ashlar_node_get_output(const ashlar_node* node, const char* operand, int32_t* tensor);

/* --- devices and engines. A null device name means the processor. */

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
  const char* device;      /* null: the processor */
  int32_t deterministic;   /* default 0 */
  int32_t allow_tf32;      /* default 1 */
  int32_t fuse;            /* default 1 */
  int32_t reference_only;  /* default 0 */
  int32_t guard;           /* default 0 */
  int64_t workspace_limit; /* bytes; default: none */
  int32_t allow_winograd;  /* default 1 */
} ashlar_compile_options;
void ashlar_compile_options_init(ashlar_compile_options* options);

typedef struct ashlar_plan_notes {
  size_t size;
  int32_t deterministic;
  int32_t tf32;
  int32_t reduced_precision_accumulation;
  int32_t runtime_compiled;
  int32_t winograd; /* pixels per tile and axis; 0: no Winograd convolution */
  int32_t truncating_accumulation;
} ashlar_plan_notes;
void ashlar_plan_notes_init(ashlar_plan_notes* notes);

/* Null options are the defaults. The plan keeps its own copy of the graph. */
ashlar_status ashlar_compile(const ashlar_graph* graph, const ashlar_compile_options* options,
                             ashlar_plan** plan);
/* What ashlar_compile would choose, for a device that need not be present. */
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

/* The tensors that ashlar_plan_run takes pointers for, in that order. */
ashlar_status ashlar_plan_bound_count(const ashlar_plan* plan, int32_t* count);
/* Their descriptions; text valid as long as the plan. */
ashlar_status ashlar_plan_bound_tensor(const ashlar_plan* plan, int32_t index,
                                       ashlar_tensor* tensor);
ashlar_status ashlar_plan_bound_bytes(const ashlar_plan* plan, int32_t index, int64_t* bytes);

/* `workspace` holds ashlar_plan_workspace_size bytes at a 64-byte boundary, null when that is 0. */
ashlar_status ashlar_plan_run(const ashlar_plan* plan, void* const* pointers, int32_t count,
                              void* workspace, void* stream);
ashlar_status ashlar_plan_run_by_uid(const ashlar_plan* plan, const int64_t* uids,
                                     void* const* pointers, int32_t count, void* workspace,
                                     void* stream);

/* --- the oracle */

typedef struct ashlar_comparison {
  size_t size;
  int32_t ok; /* 1 when every element lies inside its bound */
  int32_t tensor;
  int64_t compared;
  int64_t mismatches;
  int64_t worst_index; /* row-major, of the largest error / bound */
  double worst_error;
  double worst_bound;
} ashlar_comparison;
void ashlar_comparison_init(ashlar_comparison* comparison);

/* Evaluates the graph in double precision on host memory, pointers in the order of the bound
 * tensors (inputs, scalars and outputs as created), and gives one output: `values` and `bounds`
 * (either may be null) take `count` numbers, row-major, where count is the tensor's number of
 * elements. A complex element is two numbers, here and below: real part, imaginary part. */
ashlar_status ashlar_reference(const ashlar_graph* graph, const void* const* pointers,
                               int32_t pointer_count, int32_t output, double* values,
                               double* bounds, int64_t count);
/* Does so for every output, compares with what the output pointers hold, and reports the worst. The
 * sentence about it goes into the buffer. A mismatch is a result, not a failure. For results of a
 * plan use ashlar_check_plan: it knows what the plan's notes allow. */
ashlar_status ashlar_check(const ashlar_graph* graph, const void* const* pointers,
                           int32_t pointer_count, ashlar_comparison* worst, char* buffer,
                           size_t capacity, size_t* needed);
ashlar_status ashlar_check_plan(const ashlar_plan* plan, const void* const* pointers,
                                int32_t pointer_count, ashlar_comparison* worst, char* buffer,
                                size_t capacity, size_t* needed);

/* One element by its row-major index, through strides and dtype; and seeded values for all. */
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
