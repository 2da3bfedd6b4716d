#include "oracle.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

int failures = 0;

enum { MAX_TENSORS = 64, LONGEST_GRAPH = 1 << 16 };

typedef struct {
  int32_t id;
  ashlar_tensor tensor;
  size_t bytes;
  void *host, *device;
  cudnnTensorDescriptor_t descriptor;
} Bound;

struct Oracle {
  ashlar_graph* graph;
  int32_t count;
  uint64_t seed;
  Bound bound[MAX_TENSORS];
};

static void require(int condition, const char* what) {
  if (condition) return;
  fprintf(stderr, "%s: %s\n", what, ashlar_last_error());
  exit(2);
}

void* device_memory(size_t bytes) {
  void* memory = NULL;
  /* Rounded up to 4-byte words: a GPU updates a bit by an atomic on its word. */
  require(cudaMalloc(&memory, bytes / 4 * 4 + 4) == cudaSuccess, "cudaMalloc");
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

static Oracle* parsed_graph(const char* text) {
  Oracle* oracle = calloc(1, sizeof *oracle);
  require(ashlar_graph_from_json(text, strlen(text), &oracle->graph) == ASHLAR_OK, text);
  int32_t tensors = 0;
  require(ashlar_graph_tensor_count(oracle->graph, &tensors) == ASHLAR_OK, "count");
  for (int32_t id = 0; id < tensors; ++id) {
    Bound bound = {.id = id};
    ashlar_tensor_init(&bound.tensor);
    require(ashlar_graph_get_tensor(oracle->graph, id, &bound.tensor) == ASHLAR_OK, "tensor");
    if (!is_bound(&bound.tensor)) continue;
    require(oracle->count < MAX_TENSORS, "the graph has too many tensors");
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

/* Appends to a text of LONGEST_GRAPH characters. */
static char* append(char* end, const char* limit, const char* what) {
  const size_t length = strlen(what);
  require(end + length < limit, "the graph is too long");
  memcpy(end, what, length + 1);
  return end + length;
}

/* The text with ' replaced by ", and @T, @C, @L, @A and @B by the values of the variant. */
static const char* expanded(const Variant* variant, const char* json, va_list arguments) {
  static char printed[LONGEST_GRAPH], text[LONGEST_GRAPH];
  const int length = vsnprintf(printed, sizeof printed, json, arguments);
  require(length > 0 && length < LONGEST_GRAPH, "the graph is too long");
  char* end = text;
  for (const char* next = printed; *next != '\0'; ++next) {
    char one[2] = {*next == '\'' ? '"' : *next, '\0'}, number[32] = "";
    const char* what = one;
    if (*next == '@' && variant != NULL) {
      const int is_double = strcmp(variant->dtype, "f64") == 0;
      switch (*++next) {
        case 'T': what = variant->dtype; break;
        case 'C': what = is_double ? "f64" : "f32"; break;
        case 'L': what = variant->layout; break;
        case 'A':
        case 'B':
          snprintf(number, sizeof number, "%.9g", *next == 'A' ? variant->alpha : variant->beta);
          what = number;
          break;
        default: require(0, "@ is not followed by T, C, L, A or B");
      }
    }
    end = append(end, text + sizeof text, what);
  }
  return text;
}

Oracle* oracle_graph(const char* json, ...) {
  va_list arguments;
  va_start(arguments, json);
  Oracle* oracle = parsed_graph(expanded(NULL, json, arguments));
  va_end(arguments);
  return oracle;
}

const Variant variants[VARIANTS] = {
    {"f32", "row_major", 1.0, 0.0},  {"f32", "channels_last", 0.75, -1.5},
    {"f16", "row_major", 0.75, 0.0}, {"f16", "channels_last", 1.0, 0.5},
    {"f64", "row_major", 0.3, 0.7},  {"bf16", "channels_last", 1.0, 0.0},
};

Oracle* oracle_variant(const Variant* variant, const char* json, ...) {
  va_list arguments;
  va_start(arguments, json);
  Oracle* oracle = parsed_graph(expanded(variant, json, arguments));
  va_end(arguments);
  return oracle;
}

const void* factor_of(const Variant* variant, double value) {
  enum { SLOTS = 16 };
  static float floats[SLOTS];
  static double doubles[SLOTS];
  static int slot = 0;
  slot = (slot + 1) % SLOTS;
  floats[slot] = (float)value;
  doubles[slot] = value;
  return strcmp(variant->dtype, "f64") == 0 ? (const void*)&doubles[slot] : &floats[slot];
}

void oracle_destroy(Oracle* oracle) {
  if (oracle == NULL) return;
  for (int32_t i = 0; i < oracle->count; ++i) {
    free(oracle->bound[i].host);
    cudaFree(oracle->bound[i].device);
    cudnnDestroyTensorDescriptor(oracle->bound[i].descriptor);
  }
  ashlar_graph_destroy(oracle->graph);
  free(oracle);
}

static Bound* find(const Oracle* oracle, const char* tensor) {
  for (int32_t i = 0; i < oracle->count; ++i)
    if (strcmp(oracle->bound[i].tensor.name, tensor) == 0) return (Bound*)&oracle->bound[i];
  fprintf(stderr, "tensor: got %s, expected the name of a bound tensor\n", tensor);
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

void oracle_before(Oracle* oracle, const Variant* variant, const char* before, const char* output) {
  const Bound *from = find(oracle, before), *to = find(oracle, output);
  const cudaError_t status =
      variant->beta == 0.0
          ? cudaMemset(to->device, 0xFF, to->bytes)
          : cudaMemcpy(to->device, from->device, from->bytes, cudaMemcpyDeviceToDevice);
  require(from->bytes == to->bytes && status == cudaSuccess, "oracle_before");
}

static cudnnDataType_t data_type_of(ashlar_dtype dtype) {
  switch (dtype) {
    case ASHLAR_F64: return CUDNN_DATA_DOUBLE;
    case ASHLAR_F16: return CUDNN_DATA_HALF;
    case ASHLAR_BF16: return CUDNN_DATA_BFLOAT16;
    case ASHLAR_I8: return CUDNN_DATA_INT8;
    case ASHLAR_U8: return CUDNN_DATA_UINT8;
    case ASHLAR_I32: return CUDNN_DATA_INT32;
    case ASHLAR_I64: return CUDNN_DATA_INT64;
    case ASHLAR_F32: return CUDNN_DATA_FLOAT;
    default: require(0, "oracle_tensor: the type is not supported");
  }
  return CUDNN_DATA_FLOAT;
}

cudnnTensorDescriptor_t oracle_tensor(Oracle* oracle, const char* tensor) {
  Bound* bound = find(oracle, tensor);
  if (bound->descriptor != NULL) return bound->descriptor;
  int dims[CUDNN_DIM_MAX], strides[CUDNN_DIM_MAX];
  for (int axis = 0; axis < bound->tensor.rank; ++axis) {
    dims[axis] = (int)bound->tensor.dims[axis];
    strides[axis] = (int)bound->tensor.strides[axis];
  }
  require(cudnnCreateTensorDescriptor(&bound->descriptor) == CUDNN_STATUS_SUCCESS &&
              cudnnSetTensorNdDescriptor(bound->descriptor, data_type_of(bound->tensor.dtype),
                                         bound->tensor.rank, dims, strides) == CUDNN_STATUS_SUCCESS,
          "oracle_tensor");
  return bound->descriptor;
}

void oracle_check(Oracle* oracle) {
  const void* pointers[MAX_TENSORS];
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
  fprintf(stderr, "%s:%d: %s: got %s, expected %s: %s\n", file, line, call,
          cudnnGetErrorString(got), cudnnGetErrorString(expected), sentence);
}

void expect_true(int condition, const char* text, const char* file, int line) {
  if (condition) return;
  ++failures;
  fprintf(stderr, "%s:%d: failed: %s\n", file, line, text);
}
