/* The C API: autotuning. */
#ifndef ASHLAR_C_TUNE_H
#define ASHLAR_C_TUNE_H

#include <ashlar/c/plan.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* The candidates that tuning would time, by region; the device need not be present. */
ashlar_status ashlar_candidates(const ashlar_graph* graph, const ashlar_compile_options* options,
                                ashlar_trials** trials);

/* "region 1 of 2: matmul, 3 of 24: cuda.gemm_sm90 tile_m=128 ...", before every trial */
typedef void (*ashlar_tune_progress)(const char* what, void* context);

/* Times the candidates and records the fastest in the cache ($ASHLAR_CACHE), where compiling with
 * the option `tune` finds them, in this process and later ones. `again`: measure even if a record
 * exists. `progress` may be null. */
ashlar_status ashlar_autotune(const ashlar_graph* graph, const ashlar_compile_options* options,
                              int again, ashlar_tune_progress progress, void* context,
                              ashlar_trials** trials);
void ashlar_trials_destroy(ashlar_trials* trials); /* null is ignored */

/* Strings in these structs are owned by `trials`. */
typedef struct ashlar_region_trials {
  size_t size;
  const char* region; /* "matmul + add" */
  int32_t trials;     /* number; trial 0 is what compiling selects without tuning */
  int32_t best;       /* index of the fastest that was timed, else 0 */
  int32_t remembered; /* 1: from the tuning record; only the best has a time */
  int32_t reserved;
} ashlar_region_trials;
void ashlar_region_trials_init(ashlar_region_trials* region);

typedef struct ashlar_trial {
  size_t size;
  const char* engine;  /* "cuda.gemm_sm90" */
  const char* config;  /* "tile_m=128 tile_n=256" */
  const char* failure; /* why it could not be timed; "" */
  double estimated;    /* seconds, by the cost model */
  double measured;     /* seconds; negative: not timed */
} ashlar_trial;
void ashlar_trial_init(ashlar_trial* trial);

ashlar_status ashlar_trials_region_count(const ashlar_trials* trials, int32_t* count);
ashlar_status ashlar_trials_region(const ashlar_trials* trials, int32_t region,
                                   ashlar_region_trials* result);
ashlar_status ashlar_trials_get(const ashlar_trials* trials, int32_t region, int32_t index,
                                ashlar_trial* trial);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
