/* The C API: compiling graphs into plans, and running plans. */
#ifndef ASHLAR_C_PLAN_H
#define ASHLAR_C_PLAN_H

#include <ashlar/c/graph.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* See ashlar::CompileOptions. */
typedef struct ashlar_compile_options {
  size_t size;
  const char* device; /* null: "cpu" */
  const char* engine; /* id ("cpu.conv_tiles") to use for every region it supports; null: any */
  /* Inputs whose contents never change (weights), by name, with their memory: compiling may read
   * and prepack them. Runs still need their pointers, with unchanged contents. */
  const char* const* constant_names;
  const void* const* constant_data;
  int64_t workspace_limit;   /* bytes; default: unlimited */
  int32_t constant_count;    /* default 0 */
  int32_t deterministic;     /* default 0 */
  int32_t allow_tf32;        /* default 1 */
  int32_t allow_winograd;    /* default 1 */
  int32_t fuse;              /* default 1 */
  int32_t reference_only;    /* default 0 */
  int32_t guard;             /* default 0 */
  int32_t tune;              /* default 0: time the candidates, select the fastest */
  int32_t tune_back_to_back; /* default 0 */
  int32_t max_candidates;    /* that tuning times per region; default 0: all */
  const char* recompute;     /* "none", "cheap" or "all"; null: "none" */
  int64_t recompute_budget;  /* bytes of workspace; default 0: no budget */
  /* Outputs that may be bound to the memory of an input, and their inputs, by name. */
  const char* const* in_place_outputs;
  const char* const* in_place_inputs;
  int32_t in_place_count; /* default 0 */
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
/* With constants as in ashlar_compile_options: a saved plan does not store them. */
ashlar_status ashlar_plan_from_json_with_constants(const char* text, size_t length,
                                                   const char* const* names,
                                                   const void* const* data, int32_t count,
                                                   ashlar_plan** plan);
void ashlar_plan_destroy(ashlar_plan* plan); /* null is ignored */

ashlar_status ashlar_plan_to_json(const ashlar_plan* plan, char* buffer, size_t capacity,
                                  size_t* needed);
ashlar_status ashlar_plan_explain(const ashlar_plan* plan, char* buffer, size_t capacity,
                                  size_t* needed);
/* A copy of the plan's graph, which the caller destroys. */
ashlar_status ashlar_plan_graph(const ashlar_plan* plan, ashlar_graph** copy);
ashlar_status ashlar_plan_device(const ashlar_plan* plan, char* buffer, size_t capacity,
                                 size_t* needed);
/* FLOPs of one run, 2 per multiply-add. */
ashlar_status ashlar_plan_flops(const ashlar_plan* plan, double* flops);
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

/* The position of a tensor in binding order, for programs that bind by name. */
ashlar_status ashlar_plan_find_bound(const ashlar_plan* plan, const char* name, int32_t* index);

/* `workspace`: ashlar_plan_workspace_size bytes, 64-byte aligned; null if that size is 0. `stream`:
 * a CUstream, null for the default stream; ignored on the CPU. */
ashlar_status ashlar_plan_run(const ashlar_plan* plan, void* const* pointers, int32_t count,
                              void* workspace, void* stream);
ashlar_status ashlar_plan_run_by_uid(const ashlar_plan* plan, const int64_t* uids,
                                     void* const* pointers, int32_t count, void* workspace,
                                     void* stream);
/* One run that the device times region by region: `seconds` of each of the `region_count` regions,
 * in execution order. Unlike ashlar_plan_run it allocates, and it waits for the device. */
ashlar_status ashlar_plan_region_seconds(const ashlar_plan* plan, void* const* pointers,
                                         int32_t count, void* workspace, void* stream,
                                         double* seconds, int32_t region_count);

/* --- CUDA graphs that a program constructs explicitly; stream capture of ashlar_plan_run needs
 * nothing of this */

/* Adds one run to `cuda_graph`, an empty CUgraph (or cudaGraph_t), as a linear chain of nodes. The
 * plan must outlive the graph and everything instantiated from it. A plan with owned memory
 * (ashlar_plan_owned_bytes) supports one graph at a time. */
ashlar_status ashlar_plan_populate_cuda_graph(const ashlar_plan* plan, void* cuda_graph,
                                              void* const* pointers, int32_t count,
                                              void* workspace);
/* Replaces pointers, workspace and scalar values in a graph that this plan populated;
 * cuGraphExecUpdate then brings executable graphs up to date. */
ashlar_status ashlar_plan_update_cuda_graph(const ashlar_plan* plan, void* cuda_graph,
                                            void* const* pointers, int32_t count, void* workspace);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
