/* The C API: the reference oracle, and access to elements. */
#ifndef ASHLAR_C_CHECK_H
#define ASHLAR_C_CHECK_H

#include <ashlar/c/plan.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

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

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
