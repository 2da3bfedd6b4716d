#include "oracle.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

int failures = 0;

enum { MOST_TENSORS = 64, LONGEST_GRAPH = 1 << 16 };

typedef struct {
  int32_t id;
  ashlar_tensor tensor;
  size_t bytes;
  void *host, *device;
} Bound;

struct Oracle {
  ashlar_graph* graph;
  int32_t count;
  uint64_t seed;
  Bound bound[MOST_TENSORS];
};

static void require(int condition, const char* what) {
  if (condition) return;
  fprintf(stderr, "%s: %s\n", what, ashlar_last_error());
  exit(2);
}

void* device_memory(size_t bytes) {
  void* memory = NULL;
  require(cudaMalloc(&memory, bytes > 0 ? bytes : 1) == cudaSuccess, "cudaMalloc");
  return memory;
}

void* device_copy(const void* host, size_t bytes) {
  void* memory = device_memory(bytes);
  require(cudaMemcpy(memory, host, bytes, cudaMemcpyHostToDevice) == cudaSuccess, "cudaMemcpy");
  return memory;
}

static int is_bound(const ashlar_tensor* tensor) {
  return tensor->kind == ASHLAR_INPUT || tensor->kind == ASHLAR_OUTPUT ||
         tensor->kind == ASHLAR_SCALAR;
}

static void fill(Oracle* oracle, Bound* bound, double low, double high) {
  require(ashlar_fill_random(oracle->graph, bound->id, bound->host, ++oracle->seed, low, high) ==
              ASHLAR_OK,
          "ashlar_fill_random");
  require(
      cudaMemcpy(bound->device, bound->host, bound->bytes, cudaMemcpyHostToDevice) == cudaSuccess,
      "cudaMemcpy");
}

Oracle* oracle_graph(const char* json, ...) {
  static char text[LONGEST_GRAPH];
  va_list arguments;
  va_start(arguments, json);
  const int length = vsnprintf(text, sizeof text, json, arguments);
  va_end(arguments);
  require(length > 0 && length < LONGEST_GRAPH, "the graph is too long");

  Oracle* oracle = calloc(1, sizeof *oracle);
  require(ashlar_graph_from_json(text, (size_t)length, &oracle->graph) == ASHLAR_OK, text);
  int32_t tensors = 0;
  require(ashlar_graph_tensor_count(oracle->graph, &tensors) == ASHLAR_OK, "count");
  for (int32_t id = 0; id < tensors; ++id) {
    Bound bound = {.id = id};
    ashlar_tensor_init(&bound.tensor);
    require(ashlar_graph_get_tensor(oracle->graph, id, &bound.tensor) == ASHLAR_OK, "tensor");
    if (!is_bound(&bound.tensor)) continue;
    require(oracle->count < MOST_TENSORS, "the graph has too many tensors");
    int64_t bytes = 0;
    require(ashlar_graph_tensor_bytes(oracle->graph, id, &bytes) == ASHLAR_OK, "bytes");
    bound.bytes = (size_t)bytes;
    bound.host = calloc(bound.bytes + 1, 1);
    bound.device = device_memory(bound.bytes);
    oracle->bound[oracle->count] = bound;
    fill(oracle, &oracle->bound[oracle->count++], -1.0, 1.0);
  }
  return oracle;
}

void oracle_destroy(Oracle* oracle) {
  if (oracle == NULL) return;
  for (int32_t i = 0; i < oracle->count; ++i) {
    free(oracle->bound[i].host);
    cudaFree(oracle->bound[i].device);
  }
  ashlar_graph_destroy(oracle->graph);
  free(oracle);
}

static Bound* find(const Oracle* oracle, const char* tensor) {
  for (int32_t i = 0; i < oracle->count; ++i)
    if (strcmp(oracle->bound[i].tensor.name, tensor) == 0) return (Bound*)&oracle->bound[i];
  fprintf(stderr, "no bound tensor is named %s\n", tensor);
  exit(2);
}

void* oracle_device(const Oracle* oracle, const char* tensor) {
  return find(oracle, tensor)->device;
}
void* oracle_host(const Oracle* oracle, const char* tensor) { return find(oracle, tensor)->host; }
size_t oracle_bytes(const Oracle* oracle, const char* tensor) {
  return find(oracle, tensor)->bytes;
}
void oracle_fill(Oracle* oracle, const char* tensor, double low, double high) {
  fill(oracle, find(oracle, tensor), low, high);
}
void oracle_upload(Oracle* oracle, const char* tensor) {
  const Bound* bound = find(oracle, tensor);
  require(
      cudaMemcpy(bound->device, bound->host, bound->bytes, cudaMemcpyHostToDevice) == cudaSuccess,
      "cudaMemcpy");
}
void oracle_download(Oracle* oracle, const char* tensor) {
  const Bound* bound = find(oracle, tensor);
  require(
      cudaMemcpy(bound->host, bound->device, bound->bytes, cudaMemcpyDeviceToHost) == cudaSuccess,
      "cudaMemcpy");
}

void oracle_check(Oracle* oracle) {
  const void* pointers[MOST_TENSORS];
  for (int32_t i = 0; i < oracle->count; ++i) {
    Bound* bound = &oracle->bound[i];
    if (bound->tensor.kind == ASHLAR_OUTPUT) oracle_download(oracle, bound->tensor.name);
    pointers[i] = bound->host;
  }
  ashlar_comparison worst;
  ashlar_comparison_init(&worst);
  char sentence[1024] = "";
  require(ashlar_check(oracle->graph, pointers, oracle->count, &worst, sentence, sizeof sentence,
                       NULL) == ASHLAR_OK,
          "ashlar_check");
  if (!worst.ok) {
    ++failures;
    fprintf(stderr, "wrong: %s\n", sentence);
  }
}

void expect_status(cudnnStatus_t got, cudnnStatus_t expected, const char* call, const char* file,
                   int line) {
  if (got == expected) return;
  ++failures;
  char sentence[1024] = "";
  cudnnGetLastErrorString(sentence, sizeof sentence);
  fprintf(stderr, "%s:%d: %s answered %s, expected %s: %s\n", file, line, call,
          cudnnGetErrorString(got), cudnnGetErrorString(expected), sentence);
}

void expect_true(int condition, const char* text, const char* file, int line) {
  if (condition) return;
  ++failures;
  fprintf(stderr, "%s:%d: not so: %s\n", file, line, text);
}
