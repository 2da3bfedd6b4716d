/* The C API: what ashlar_explain says, as values. */
#ifndef ASHLAR_C_INSPECT_H
#define ASHLAR_C_INSPECT_H

#include <ashlar/c/plan.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* For a device that need not be present. */
ashlar_status ashlar_inspect(const ashlar_graph* graph, const ashlar_compile_options* options,
                             ashlar_inspection** inspection);
/* Of a compiled plan. */
ashlar_status ashlar_plan_inspect(const ashlar_plan* plan, ashlar_inspection** inspection);
void ashlar_inspection_destroy(ashlar_inspection* inspection); /* null is ignored */

/* How an engine computes, slowest first. */
typedef int32_t ashlar_compute_method;
enum {
  ASHLAR_METHOD_REFERENCE = 0,
  ASHLAR_METHOD_THREAD_PER_OUTPUT,
  ASHLAR_METHOD_CUDA_CORES,
  ASHLAR_METHOD_SIMD,
  ASHLAR_METHOD_TENSOR_CORES
};

typedef struct ashlar_inspected_plan {
  size_t size;
  double seconds;          /* of all regions */
  int64_t workspace_bytes; /* known where the device is present */
  int64_t owned_bytes;
  int32_t operations; /* nodes of the graph as it was given */
  int32_t rewrites;   /* what was changed, a sentence each */
  int32_t regions;    /* in execution order */
  int32_t reserved;
} ashlar_inspected_plan;
void ashlar_inspected_plan_init(ashlar_inspected_plan* plan);

/* See ashlar::RegionInspection. Strings here and below are owned by the inspection. */
typedef struct ashlar_inspected_region {
  size_t size;
  const char* name;   /* "conv_forward + add" */
  const char* engine; /* id; "" where the build has none for the device */
  const char* kind;
  const char* config;
  double seconds; /* estimated, or measured by tuning */
  double flops;
  double bytes;
  double peak_flops; /* per second */
  double arithmetic_seconds;
  double memory_seconds;
  int64_t scratch_bytes;
  ashlar_compute_method method;
  int32_t nodes;
  int32_t attempts;   /* engines of the device, in the order tried */
  int32_t boundaries; /* with earlier regions */
} ashlar_inspected_region;
void ashlar_inspected_region_init(ashlar_inspected_region* region);

typedef struct ashlar_engine_attempt {
  size_t size;
  const char* engine;
  const char* outcome; /* "refused: ...", "12.3 us estimated" */
  ashlar_compute_method method;
  int32_t is_chosen;
  int32_t is_other_operation; /* refused because the engine is for other operations */
  int32_t reserved;
} ashlar_engine_attempt;
void ashlar_engine_attempt_init(ashlar_engine_attempt* attempt);

/* A value that passes through memory between two regions although pointwise work computes or reads
 * it. */
typedef struct ashlar_region_boundary {
  size_t size;
  const char* value; /* name of the tensor */
  const char* reason;
  int32_t region; /* the earlier one */
  int32_t reserved;
} ashlar_region_boundary;
void ashlar_region_boundary_init(ashlar_region_boundary* boundary);

ashlar_status ashlar_inspection_plan(const ashlar_inspection* inspection,
                                     ashlar_inspected_plan* plan);
ashlar_status ashlar_inspection_notes(const ashlar_inspection* inspection,
                                      ashlar_plan_notes* notes);
ashlar_status ashlar_inspection_rewrite(const ashlar_inspection* inspection, int32_t index,
                                        const char** sentence);
/* A copy of the rewritten graph, which holds the nodes of regions; the caller destroys it. */
ashlar_status ashlar_inspection_graph(const ashlar_inspection* inspection, ashlar_graph** copy);
ashlar_status ashlar_inspection_region(const ashlar_inspection* inspection, int32_t region,
                                       ashlar_inspected_region* result);
/* The id in the rewritten graph of one of the region's nodes, in execution order. */
ashlar_status ashlar_inspection_node(const ashlar_inspection* inspection, int32_t region,
                                     int32_t index, int32_t* id);
ashlar_status ashlar_inspection_attempt(const ashlar_inspection* inspection, int32_t region,
                                        int32_t index, ashlar_engine_attempt* attempt);
ashlar_status ashlar_inspection_boundary(const ashlar_inspection* inspection, int32_t region,
                                         int32_t index, ashlar_region_boundary* boundary);
/* What ashlar_explain says. */
ashlar_status ashlar_inspection_text(const ashlar_inspection* inspection, char* buffer,
                                     size_t capacity, size_t* needed);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
