/* The C API: tensors, graphs, nodes. */
#ifndef ASHLAR_C_GRAPH_H
#define ASHLAR_C_GRAPH_H

#include <ashlar/c/base.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

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
/* The string is owned by the graph. */
ashlar_status ashlar_graph_name(const ashlar_graph* graph, const char** name);
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
/* The tensors that runs need pointers for, in binding order: inputs, scalars and outputs. */
ashlar_status ashlar_graph_bound_count(const ashlar_graph* graph, int32_t* count);
ashlar_status ashlar_graph_bound_tensor(const ashlar_graph* graph, int32_t index, int32_t* id);
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

/* --- gradients (docs/gradients.md) */

/* Adds the operations that compute the gradients of the sum of the tensors `of` with respect to the
 * tensors `wrt`, and stores the id of each in results[wrt_count]: ASHLAR_NO_TENSOR where `of` does
 * not depend on it. cotangents[of_count], or null: gradients of the final result with respect to
 * `of`, ASHLAR_NO_TENSOR for 1. */
ashlar_status ashlar_graph_gradients(ashlar_graph* graph, const int32_t* of, int32_t of_count,
                                     const int32_t* wrt, int32_t wrt_count,
                                     const int32_t* cotangents, int32_t* results);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
