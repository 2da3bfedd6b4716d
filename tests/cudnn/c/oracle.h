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

/* A graph in the JSON of docs/graph-json.md, printed like printf does; ' may stand for ". Inputs
 * hold seeded numbers from -1 to 1, outputs hold them too (a call that writes nothing is found
 * out). Ends the program on a bad graph. */
Oracle* oracle_graph(const char* json, ...);

/* What a test runs through: types, layouts and factors. In the graph of one, @T stands for its
 * type, @C for the type it is computed in, @L for its layout, @A and @B for alpha and beta. */
typedef struct {
  const char *dtype, *layout;
  double alpha, beta;
} Variant;
enum { VARIANTS = 6 };
extern const Variant variants[VARIANTS]; /* f32 twice, f16 twice, f64, bf16; both layouts */
Oracle* oracle_variant(const Variant* variant, const char* json, ...);
/* A factor where the calls want it: a double for f64, else a float. Valid for some more calls. */
const void* factor_of(const Variant* variant, double value);

/* Parts of such graphs. BLEND ends one: y = alpha * f + beta * before. */
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
/* Gives an output what it holds before the call: `before`, or NaN where beta is 0. */
void oracle_before(Oracle* oracle, const Variant* variant, const char* before, const char* output);

/* The descriptor of a bound tensor; destroyed with the oracle. */
cudnnTensorDescriptor_t oracle_tensor(Oracle* oracle, const char* tensor);
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
