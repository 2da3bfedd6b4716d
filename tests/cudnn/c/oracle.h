/* The oracle for tests of legacy calls, in C99: a graph with host and device memory for each of its
 * bound tensors (cudaMalloc: of a GPU, or of the host runtime of tools/hostrt). A test builds the
 * graph that is equivalent to the call, makes the call on the device pointers, and lets the oracle
 * check the outputs. */
#ifndef ASHLAR_TESTS_CUDNN_C_ORACLE_H
#define ASHLAR_TESTS_CUDNN_C_ORACLE_H

#include <ashlar/ashlar.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <stdio.h>

typedef struct Oracle Oracle;

/* A graph in the JSON of docs/graph-json.md, formatted as by printf; ' may replace ". Inputs hold
 * random values in [-1, 1], and so do outputs, so that a call that writes nothing is detected.
 * Exits on an invalid graph. */
Oracle* oracle_graph(const char* json, ...);

/* A test variant: type, layout and factors. In the graph text, @T is its type, @C its compute type,
 * @L its layout, @A and @B are alpha and beta. */
typedef struct {
  const char *dtype, *layout;
  double alpha, beta;
} Variant;
enum { VARIANTS = 6 };
extern const Variant variants[VARIANTS]; /* f32 twice, f16 twice, f64, bf16; both layouts */
Oracle* oracle_variant(const Variant* variant, const char* json, ...);
/* A pointer to a factor: double for f64, else float. Valid for some more calls. */
const void* factor_of(const Variant* variant, double value);

/* Pieces of graph text. BLEND is the last node: y = alpha * f + beta * before. */
#define GRAPH(tensors, nodes) \
  "{'format':'ashlar-graph','version':1,'tensors':[" tensors "],'nodes':[" nodes "]}"
#define TENSOR(kind, name, dims) \
  "{'name':'" name "','kind':'" kind "','dtype':'@T','dims':" dims ",'layout':'@L'}"
#define VIRTUAL(name) "{'name':'" name "','dtype':'@C'}"
#define CONSTANT(name, value) \
  "{'name':'" name "','kind':'constant','dtype':'@C','dims':[1,1,1,1],'value':" value "}"
#define BLEND(f, before, y)                                                      \
  "{'op':'pointwise','inputs':{'x':'" f "','b':'" before "'},'outputs':{'y':'" y \
  "'},'attributes':{'mode':'add','alpha1':@A,'alpha2':@B}}"
/* Initialises an output: with `before`, or with NaN if beta is 0. */
void oracle_before(Oracle* oracle, const Variant* variant, const char* before, const char* output);

/* The descriptor of a bound tensor; destroyed with the oracle. */
cudnnTensorDescriptor_t oracle_tensor(Oracle* oracle, const char* tensor);
void oracle_destroy(Oracle* oracle);

void* oracle_device(const Oracle* oracle, const char* tensor); /* the device pointer */
void* oracle_host(const Oracle* oracle, const char* tensor);   /* the host's copy */
size_t oracle_bytes(const Oracle* oracle, const char* tensor);
/* Refills an input with random values in [low, high]. */
void oracle_fill(Oracle* oracle, const char* tensor, double low, double high);
/* Copies a tensor to the device, after its host copy was changed. */
void oracle_upload(Oracle* oracle, const char* tensor);
/* Copies an output to the host. */
void oracle_download(Oracle* oracle, const char* tensor);

/* Copies the outputs to the host, compares them with the oracle and prints errors. */
void oracle_check(Oracle* oracle);

/* Device memory initialised with these bytes; exits when the allocation fails. */
void* device_copy(const void* host, size_t bytes);
void* device_memory(size_t bytes);

extern int failures; /* the exit code of main() if not 0 */
void expect_status(cudnnStatus_t got, cudnnStatus_t expected, const char* call, const char* file,
                   int line);
void expect_true(int condition, const char* text, const char* file, int line);
#define CHECK(condition) expect_true((condition), #condition, __FILE__, __LINE__)
#define SUCCEEDS(call) expect_status((call), CUDNN_STATUS_SUCCESS, #call, __FILE__, __LINE__)
#define RETURNS(status, call) expect_status((call), (status), #call, __FILE__, __LINE__)

#endif
