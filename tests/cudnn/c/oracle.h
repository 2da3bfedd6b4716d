/* For tests of the older calls, in C99: a graph for the oracle, with memory for each of its bound
 * tensors on the host and on the device (cudaMalloc: a GPU's, or the host's with the stand-in of
 * cudnn/hostrt). A test fills a graph that means what the call is to do, makes the call on the
 * device pointers, and lets the oracle judge the outputs. */
#ifndef ASHLAR_TESTS_CUDNN_C_ORACLE_H
#define ASHLAR_TESTS_CUDNN_C_ORACLE_H

#include <ashlar/ashlar.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <stdio.h>

typedef struct Oracle Oracle;

/* A graph in the JSON of docs/graph.md, printed like printf does. Inputs hold seeded numbers from
 * -1 to 1, outputs hold them too (a call that writes nothing is found out). Ends the program on a
 * bad graph. */
Oracle* oracle_graph(const char* json, ...);
void oracle_destroy(Oracle* oracle);

void* oracle_device(const Oracle* oracle, const char* tensor); /* the device pointer */
void* oracle_host(const Oracle* oracle, const char* tensor);   /* the host's copy */
size_t oracle_bytes(const Oracle* oracle, const char* tensor);
/* Other numbers for an input. */
void oracle_fill(Oracle* oracle, const char* tensor, double low, double high);
/* After changing the host's copy of an input or of an output that a call reads. */
void oracle_upload(Oracle* oracle, const char* tensor);
/* Brings an output's memory to the host. */
void oracle_download(Oracle* oracle, const char* tensor);

/* Brings the outputs to the host and compares; says what is wrong. */
void oracle_check(Oracle* oracle);

/* Device memory with these bytes in it; ends the program when there is none. */
void* device_copy(const void* host, size_t bytes);
void* device_memory(size_t bytes);

extern int failures; /* what main() returns when it is not 0 */
void expect_status(cudnnStatus_t got, cudnnStatus_t expected, const char* call, const char* file,
                   int line);
void expect_true(int condition, const char* text, const char* file, int line);
#define CHECK(condition) expect_true((condition), #condition, __FILE__, __LINE__)
#define SUCCEEDS(call) expect_status((call), CUDNN_STATUS_SUCCESS, #call, __FILE__, __LINE__)
#define ANSWERS(status, call) expect_status((call), (status), #call, __FILE__, __LINE__)

#endif
