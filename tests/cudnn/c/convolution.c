#include "convolution.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { STRINGS = 64, LONGEST = 1024 };

static const char* text(const char* format, ...) {
  static char strings[STRINGS][LONGEST];
  static int next = 0;
  char* slot = strings[next++ % STRINGS];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(slot, LONGEST, format, arguments);
  va_end(arguments);
  return slot;
}

cudnnDataType_t type_of(const char* dtype) {
  static const struct {
    const char* name;
    cudnnDataType_t type;
  } known[] = {{"f32", CUDNN_DATA_FLOAT},     {"f16", CUDNN_DATA_HALF}, {"f64", CUDNN_DATA_DOUBLE},
               {"bf16", CUDNN_DATA_BFLOAT16}, {"i8", CUDNN_DATA_INT8},  {"i32", CUDNN_DATA_INT32}};
  for (size_t i = 0; i < sizeof known / sizeof known[0]; ++i)
    if (strcmp(known[i].name, dtype) == 0) return known[i].type;
  fprintf(stderr, "dtype: got %s, expected a known type\n", dtype);
  exit(2);
}

int output_extent(const Shape* shape, int axis) {
  const int window = (shape->window[axis] - 1) * shape->dilation[axis] + 1;
  return (shape->in[axis] + 2 * shape->pad[axis] - window) / shape->stride[axis] + 1;
}

static void output_extents(const Shape* shape, int extents[MAX_AXES]) {
  for (int axis = 0; axis < shape->spatial; ++axis) extents[axis] = output_extent(shape, axis);
}

const char* sum_type(const Shape* shape) {
  if (strcmp(shape->dtype, "f64") == 0) return "f64";
  return strcmp(shape->dtype, "i8") == 0 ? "i32" : "f32";
}

static void all_dims(const Shape* shape, int dim0, int dim1, const int* spatial, int* dims) {
  dims[0] = dim0;
  dims[1] = dim1;
  memcpy(dims + 2, spatial, sizeof(int) * (size_t)shape->spatial);
}

Descriptors make_descriptors(const Shape* shape) {
  const cudnnTensorFormat_t format = shape->nhwc ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW;
  const cudnnDataType_t type = type_of(shape->dtype);
  const int rank = shape->spatial + 2;
  int dims[MAX_AXES + 2], out[MAX_AXES], ones[MAX_AXES] = {1, 1, 1};
  Descriptors created;
  output_extents(shape, out);
  SUCCEEDS(cudnnCreateTensorDescriptor(&created.x));
  all_dims(shape, shape->n, shape->c, shape->in, dims);
  SUCCEEDS(cudnnSetTensorNdDescriptorEx(created.x, format, type, rank, dims));
  SUCCEEDS(cudnnCreateTensorDescriptor(&created.y));
  all_dims(shape, shape->n, shape->k, out, dims);
  SUCCEEDS(cudnnSetTensorNdDescriptorEx(created.y, format, type, rank, dims));
  SUCCEEDS(cudnnCreateTensorDescriptor(&created.bias));
  all_dims(shape, 1, shape->k, ones, dims);
  SUCCEEDS(cudnnSetTensorNdDescriptorEx(
      created.bias, format, strcmp(shape->dtype, "i8") == 0 ? CUDNN_DATA_FLOAT : type, rank, dims));
  SUCCEEDS(cudnnCreateFilterDescriptor(&created.w));
  all_dims(shape, shape->k, shape->c / shape->groups, shape->window, dims);
  SUCCEEDS(cudnnSetFilterNdDescriptor(created.w, type, format, rank, dims));
  SUCCEEDS(cudnnCreateConvolutionDescriptor(&created.conv));
  SUCCEEDS(cudnnSetConvolutionNdDescriptor(created.conv, shape->spatial, shape->pad, shape->stride,
                                           shape->dilation, shape->mode, type_of(sum_type(shape))));
  SUCCEEDS(cudnnSetConvolutionGroupCount(created.conv, shape->groups));
  SUCCEEDS(cudnnSetConvolutionMathType(created.conv, CUDNN_FMA_MATH));
  return created;
}

void destroy_descriptors(Descriptors* descriptors) {
  SUCCEEDS(cudnnDestroyTensorDescriptor(descriptors->x));
  SUCCEEDS(cudnnDestroyTensorDescriptor(descriptors->y));
  SUCCEEDS(cudnnDestroyTensorDescriptor(descriptors->bias));
  SUCCEEDS(cudnnDestroyFilterDescriptor(descriptors->w));
  SUCCEEDS(cudnnDestroyConvolutionDescriptor(descriptors->conv));
}

const char* json_list(const int* values, int count) {
  char list[LONGEST] = "[";
  for (int i = 0; i < count; ++i) {
    const size_t length = strlen(list);
    snprintf(list + length, sizeof list - length, i == 0 ? "%d" : ",%d", values[i]);
  }
  return text("%s]", list);
}

const char* json_tensor(const char* name, const char* kind, const char* dtype, const Shape* shape,
                        int dim0, int dim1, const int* spatial) {
  int dims[MAX_AXES + 2];
  all_dims(shape, dim0, dim1, spatial, dims);
  return text("{\"name\":\"%s\",\"kind\":\"%s\",\"dtype\":\"%s\",\"dims\":%s,\"layout\":\"%s\"}",
              name, kind, dtype, json_list(dims, shape->spatial + 2),
              shape->nhwc ? "channels_last" : "row_major");
}

const char* json_x(const Shape* shape, const char* name, const char* kind) {
  return json_tensor(name, kind, shape->dtype, shape, shape->n, shape->c, shape->in);
}
const char* json_w(const Shape* shape, const char* name, const char* kind) {
  return json_tensor(name, kind, shape->dtype, shape, shape->k, shape->c / shape->groups,
                     shape->window);
}
const char* json_y(const Shape* shape, const char* name, const char* kind) {
  int out[MAX_AXES];
  output_extents(shape, out);
  return json_tensor(name, kind, shape->dtype, shape, shape->n, shape->k, out);
}

const char* json_attributes(const Shape* shape) {
  return text("{\"padding\":%s,\"stride\":%s,\"dilation\":%s,\"mode\":\"%s\"}",
              json_list(shape->pad, shape->spatial), json_list(shape->stride, shape->spatial),
              json_list(shape->dilation, shape->spatial),
              shape->mode == CUDNN_CONVOLUTION ? "convolution" : "cross_correlation");
}

const char* json_blend(const Shape* shape, const char* from, const char* before, const char* to) {
  const char* compute = strcmp(shape->dtype, "f64") == 0 ? "f64" : "f32";
  if (shape->beta == 0.0)
    return text(
        "{\"op\":\"pointwise\",\"inputs\":{\"x\":\"%s\"},\"outputs\":{\"y\":\"%s\"},"
        "\"attributes\":{\"mode\":\"identity\",\"alpha1\":%.9g},\"compute\":\"%s\"}",
        from, to, shape->alpha, compute);
  return text(
      "{\"op\":\"pointwise\",\"inputs\":{\"x\":\"%s\",\"b\":\"%s\"},\"outputs\":{\"y\":\"%s\"},"
      "\"attributes\":{\"mode\":\"add\",\"alpha1\":%.9g,\"alpha2\":%.9g},\"compute\":\"%s\"}",
      from, before, to, shape->alpha, shape->beta, compute);
}

Number number(const Shape* shape, double value) {
  Number result;
  if (strcmp(shape->dtype, "f64") == 0)
    result.d = value;
  else
    result.f = (float)value;
  return result;
}

void* workspace_of(size_t bytes) { return bytes > 0 ? device_memory(bytes) : NULL; }
