/* Convolutions for tests: a struct of parameters, its descriptors, and the pieces of its graph as
 * JSON. */
#ifndef ASHLAR_TESTS_CUDNN_C_CONVOLUTION_H
#define ASHLAR_TESTS_CUDNN_C_CONVOLUTION_H

#include "oracle.h"

enum { MAX_AXES = 3 };

typedef struct {
  const char* dtype; /* as JSON has it */
  int nhwc;
  int spatial; /* axes */
  int n, c, k, groups;
  int in[MAX_AXES], window[MAX_AXES], pad[MAX_AXES], stride[MAX_AXES], dilation[MAX_AXES];
  cudnnConvolutionMode_t mode;
  double alpha, beta;
} Shape;

typedef struct {
  cudnnTensorDescriptor_t x, y, bias;
  cudnnFilterDescriptor_t w;
  cudnnConvolutionDescriptor_t conv;
} Descriptors;

cudnnDataType_t type_of(const char* dtype);
int output_extent(const Shape* shape, int axis);
/* Accumulation in f32, f64 or int32, without TF32, as the oracle expects. */
Descriptors make_descriptors(const Shape* shape);
void destroy_descriptors(Descriptors* descriptors);

/* "[2,3,5,5]", and with a name, kind, dtype and layout a whole tensor. The strings are in static
 * buffers that later calls reuse. */
const char* json_list(const int* values, int count);
const char* json_tensor(const char* name, const char* kind, const char* dtype, const Shape* shape,
                        int dim0, int dim1, const int* spatial);
const char* json_x(const Shape* shape, const char* name, const char* kind);
const char* json_w(const Shape* shape, const char* name, const char* kind);
const char* json_y(const Shape* shape, const char* name, const char* kind);
/* {"padding": ..., ...} */
const char* json_attributes(const Shape* shape);
/* A node that computes `to` = alpha * `from` + beta * `before`. */
const char* json_blend(const Shape* shape, const char* from, const char* before, const char* to);
/* The accumulation type: "f32", "f64" or "i32". */
const char* sum_type(const Shape* shape);

/* alpha and beta as a call expects them, in the shape's type. */
typedef union {
  float f;
  double d;
} Number;
Number number(const Shape* shape, double value);

/* A workspace of `bytes` bytes, or null for 0. */
void* workspace_of(size_t bytes);

#endif
