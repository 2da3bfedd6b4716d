/* Tensors for tests: descriptors, and a builder of JSON graphs. */
#ifndef ASHLAR_TESTS_CUDNN_C_TENSORS_H
#define ASHLAR_TESTS_CUDNN_C_TENSORS_H

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "oracle.h"

typedef struct {
  const char* dtype; /* as JSON has it */
  int nhwc;
  int rank;
  int dims[5];
} Tensor;

static inline cudnnDataType_t data_type(const char* dtype) {
  if (strcmp(dtype, "f16") == 0) return CUDNN_DATA_HALF;
  if (strcmp(dtype, "bf16") == 0) return CUDNN_DATA_BFLOAT16;
  if (strcmp(dtype, "f64") == 0) return CUDNN_DATA_DOUBLE;
  return CUDNN_DATA_FLOAT;
}
/* The type of alpha and beta: f32, or f64 for f64 data. */
static inline const char* scalar_type(const char* dtype) {
  return strcmp(dtype, "f64") == 0 ? "f64" : "f32";
}

static inline cudnnTensorDescriptor_t descriptor_of(const Tensor* tensor) {
  cudnnTensorDescriptor_t descriptor = NULL;
  int strides[5], stride = 1;
  SUCCEEDS(cudnnCreateTensorDescriptor(&descriptor));
  for (int i = tensor->rank - 1; i >= 0; --i) { /* channels innermost, or in axis order */
    if (tensor->nhwc && i == 1) continue;
    if (tensor->nhwc && i == tensor->rank - 1) strides[1] = 1, stride = tensor->dims[1];
    strides[i] = stride;
    stride *= tensor->dims[i];
  }
  SUCCEEDS(cudnnSetTensorNdDescriptor(descriptor, data_type(tensor->dtype), tensor->rank,
                                      tensor->dims, strides));
  return descriptor;
}

static inline int elements_of(const Tensor* tensor) {
  int count = 1;
  for (int i = 0; i < tensor->rank; ++i) count *= tensor->dims[i];
  return count;
}

/* alpha and beta as a call expects them. */
typedef union {
  float f;
  double d;
} Number;
static inline Number number(const char* dtype, double value) {
  Number descriptor;
  if (strcmp(dtype, "f64") == 0)
    descriptor.d = value;
  else
    descriptor.f = (float)value;
  return descriptor;
}

/* A graph under construction. */
typedef struct {
  char tensors[1 << 13], nodes[1 << 13];
} Json;

static inline void append(char* text, size_t room, const char* format, va_list arguments) {
  const size_t length = strlen(text);
  vsnprintf(text + length, room - length, format, arguments);
}
static inline void json_tensor(Json* json, const char* name, const char* kind,
                               const Tensor* tensor) {
  char* text = json->tensors;
  size_t length = strlen(text);
  const size_t room = sizeof json->tensors;
  snprintf(text + length, room - length,
           "%s{\"name\":\"%s\",\"kind\":\"%s\",\"dtype\":\"%s\",\"layout\":\"%s\",\"dims\":[",
           length > 0 ? "," : "", name, kind, tensor->dtype,
           tensor->nhwc ? "channels_last" : "row_major");
  for (int i = 0; i < tensor->rank; ++i) {
    length = strlen(text);
    snprintf(text + length, room - length, i > 0 ? ",%d" : "%d", tensor->dims[i]);
  }
  length = strlen(text);
  snprintf(text + length, room - length, "]}");
}
static inline void json_intermediate(Json* json, const char* name, const char* dtype) {
  const size_t length = strlen(json->tensors);
  snprintf(json->tensors + length, sizeof json->tensors - length,
           "%s{\"name\":\"%s\",\"dtype\":\"%s\"}", length > 0 ? "," : "", name, dtype);
}
/* {"op": ...}, formatted as by printf. */
static inline void json_node(Json* json, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  if (json->nodes[0] != '\0') strcat(json->nodes, ",");
  append(json->nodes, sizeof json->nodes, format, arguments);
  va_end(arguments);
}
/* to = alpha * from + beta * before */
static inline void json_blend(Json* json, const char* from, double alpha, const char* before,
                              double beta, const char* to) {
  json_node(
      json,
      "{\"op\":\"pointwise\",\"inputs\":{\"x\":\"%s\",\"b\":\"%s\"},\"outputs\":{\"y\":\"%s\"}"
      ",\"attributes\":{\"mode\":\"add\",\"alpha1\":%.17g,\"alpha2\":%.17g}}",
      from, before, to, alpha, beta);
}
static inline Oracle* json_oracle(const Json* json) {
  return oracle_graph("{\"format\":\"ashlar-graph\",\"version\":1,\"tensors\":[%s],\"nodes\":[%s]}",
                      json->tensors, json->nodes);
}
/* Initialises an output with the contents of an input, for a blend. */
static inline void start_from(Oracle* oracle, const char* output, const char* input) {
  memcpy(oracle_host(oracle, output), oracle_host(oracle, input), oracle_bytes(oracle, output));
  oracle_upload(oracle, output);
}

#endif
