/* cudnnReduceTensor: nine operations, indices of all widths, with and without NaN propagation. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "oracle.h"

static cudnnHandle_t handle;

static const char* const names[] = {"add", "mul",   "min",   "max",         "amax",
                                    "avg", "norm1", "norm2", "mul_no_zeros"};
enum { OPERATIONS = 9 };

#define A_DIMS "[3,4,5,6]"
static const char* const reduced[] = {"[1,4,1,1]", "[3,1,1,1]", "[1,1,1,1]",
                                      "[3,4,1,6]", "[1,4,5,6]", A_DIMS};
enum { REDUCED = sizeof reduced / sizeof *reduced };

static cudnnReduceTensorDescriptor_t reduction(int op, cudnnDataType_t compute,
                                               cudnnNanPropagation_t nan,
                                               cudnnReduceTensorIndices_t indices,
                                               cudnnIndicesType_t type) {
  cudnnReduceTensorDescriptor_t descriptor = NULL;
  SUCCEEDS(cudnnCreateReduceTensorDescriptor(&descriptor));
  SUCCEEDS(cudnnSetReduceTensorDescriptor(descriptor, (cudnnReduceTensorOp_t)op, compute, nan,
                                          indices, type));
  return descriptor;
}

static void reduce(int op, const char* c_dims, const Variant* variant) {
  const int with_index = op >= CUDNN_REDUCE_TENSOR_MIN && op <= CUDNN_REDUCE_TENSOR_AMAX;
  char index_tensor[160] = "";
  if (with_index)
    snprintf(index_tensor, sizeof index_tensor,
             ",{'name':'index','kind':'output','dtype':'i32','dims':%s,'layout':'row_major'}",
             c_dims);
  Oracle* oracle = oracle_variant(
      variant,
      GRAPH(TENSOR("input", "a", A_DIMS) "," TENSOR(
                "input", "before", "%s") ","
                                         "{'name':'f','dtype':'@C','dims':%s}," TENSOR(
                                             "output", "c", "%s") "%s",
            "{'op':'reduction','inputs':{'x':'a'},'outputs':{'y':'f'%s},'attributes':{'mode':'%s'}}"
            "," BLEND("f", "before", "c")),
      c_dims, c_dims, c_dims, index_tensor, with_index ? ",'index':'index'" : "", names[op]);
  cudnnReduceTensorDescriptor_t how =
      reduction(op, strcmp(variant->dtype, "f64") == 0 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT,
                CUDNN_PROPAGATE_NAN,
                with_index ? CUDNN_REDUCE_TENSOR_FLATTENED_INDICES : CUDNN_REDUCE_TENSOR_NO_INDICES,
                CUDNN_32BIT_INDICES);
  size_t index_bytes = 99, workspace_bytes = 99;
  SUCCEEDS(cudnnGetReductionIndicesSize(handle, how, oracle_tensor(oracle, "a"),
                                        oracle_tensor(oracle, "c"), &index_bytes));
  SUCCEEDS(cudnnGetReductionWorkspaceSize(handle, how, oracle_tensor(oracle, "a"),
                                          oracle_tensor(oracle, "c"), &workspace_bytes));
  CHECK(index_bytes == (with_index ? oracle_bytes(oracle, "index") : 0));
  void* workspace = device_memory(workspace_bytes);
  oracle_before(oracle, variant, "before", "c");
  SUCCEEDS(cudnnReduceTensor(handle, how, with_index ? oracle_device(oracle, "index") : NULL,
                             index_bytes, workspace, workspace_bytes,
                             factor_of(variant, variant->alpha), oracle_tensor(oracle, "a"),
                             oracle_device(oracle, "a"), factor_of(variant, variant->beta),
                             oracle_tensor(oracle, "c"), oracle_device(oracle, "c")));
  oracle_check(oracle);
  cudaFree(workspace);
  SUCCEEDS(cudnnDestroyReduceTensorDescriptor(how));
  oracle_destroy(oracle);
}

/* A row that is reduced to one element. */
enum { ROW = 700 };
static float reduced_row(const float row[ROW], int op, cudnnNanPropagation_t nan,
                         cudnnIndicesType_t type, void* index, size_t bytes) {
  cudnnTensorDescriptor_t a = NULL, c = NULL;
  SUCCEEDS(cudnnCreateTensorDescriptor(&a));
  SUCCEEDS(cudnnCreateTensorDescriptor(&c));
  SUCCEEDS(cudnnSetTensor4dDescriptor(a, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 7, 10, 10));
  SUCCEEDS(cudnnSetTensor4dDescriptor(c, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 1, 1, 1));
  cudnnReduceTensorDescriptor_t how =
      reduction(op, CUDNN_DATA_FLOAT, nan, CUDNN_REDUCE_TENSOR_FLATTENED_INDICES, type);
  size_t needed = 0;
  SUCCEEDS(cudnnGetReductionIndicesSize(handle, how, a, c, &needed));
  CHECK(needed == bytes);
  const float one = 1.0F, zero = 0.0F;
  float result = 0.0F;
  void *device_a = device_copy(row, ROW * sizeof *row), *device_c = device_memory(sizeof result),
       *device_index = device_memory(bytes);
  SUCCEEDS(cudnnReduceTensor(handle, how, device_index, bytes, NULL, 0, &one, a, device_a, &zero, c,
                             device_c));
  RETURNS(CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT,
          cudnnReduceTensor(handle, how, device_index, bytes - 1, NULL, 0, &one, a, device_a, &zero,
                            c, device_c));
  CHECK(cudaMemcpy(&result, device_c, sizeof result, cudaMemcpyDeviceToHost) == cudaSuccess);
  CHECK(cudaMemcpy(index, device_index, bytes, cudaMemcpyDeviceToHost) == cudaSuccess);
  cudaFree(device_a);
  cudaFree(device_c);
  cudaFree(device_index);
  SUCCEEDS(cudnnDestroyReduceTensorDescriptor(how));
  SUCCEEDS(cudnnDestroyTensorDescriptor(a));
  SUCCEEDS(cudnnDestroyTensorDescriptor(c));
  return result;
}

static void widths_and_nan(void) {
  float row[ROW];
  for (int i = 0; i < ROW; ++i) row[i] = (float)(i % 13) * 0.25F;
  row[611] = 50.0F;
  row[205] = -60.0F;
  int32_t index32 = 0;
  int64_t index64 = 0;
  uint16_t index16 = 0;
  uint8_t index8 = 0;
  const cudnnNanPropagation_t keep = CUDNN_PROPAGATE_NAN, drop = CUDNN_NOT_PROPAGATE_NAN;
  CHECK(reduced_row(row, CUDNN_REDUCE_TENSOR_MAX, keep, CUDNN_32BIT_INDICES, &index32, 4) == 50.0F);
  CHECK(reduced_row(row, CUDNN_REDUCE_TENSOR_MAX, keep, CUDNN_64BIT_INDICES, &index64, 8) == 50.0F);
  CHECK(reduced_row(row, CUDNN_REDUCE_TENSOR_MAX, keep, CUDNN_16BIT_INDICES, &index16, 2) == 50.0F);
  CHECK(reduced_row(row, CUDNN_REDUCE_TENSOR_MIN, keep, CUDNN_8BIT_INDICES, &index8, 1) == -60.0F);
  CHECK(index32 == 611 && index64 == 611 && index16 == 611 && index8 == 205);
  row[30] = NAN;
  CHECK(isnan(reduced_row(row, CUDNN_REDUCE_TENSOR_MAX, keep, CUDNN_32BIT_INDICES, &index32, 4)));
  CHECK(index32 == 30);
  CHECK(reduced_row(row, CUDNN_REDUCE_TENSOR_MAX, drop, CUDNN_32BIT_INDICES, &index32, 4) == 50.0F);
  CHECK(index32 == 611);
  CHECK(reduced_row(row, CUDNN_REDUCE_TENSOR_MIN, drop, CUDNN_32BIT_INDICES, &index32, 4) ==
        -60.0F);
  CHECK(index32 == 205);
  CHECK(reduced_row(row, CUDNN_REDUCE_TENSOR_AMAX, drop, CUDNN_32BIT_INDICES, &index32, 4) ==
        60.0F);
  CHECK(index32 == 205);
}

static void misuse(void) {
  cudnnReduceTensorDescriptor_t how = NULL;
  cudnnReduceTensorOp_t op;
  cudnnDataType_t compute;
  cudnnNanPropagation_t nan;
  cudnnReduceTensorIndices_t indices;
  cudnnIndicesType_t type;
  SUCCEEDS(cudnnCreateReduceTensorDescriptor(&how));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnGetReduceTensorDescriptor(how, &op, &compute, &nan, &indices, &type));
  SUCCEEDS(cudnnSetReduceTensorDescriptor(how, CUDNN_REDUCE_TENSOR_NORM2, CUDNN_DATA_FLOAT,
                                          CUDNN_PROPAGATE_NAN, CUDNN_REDUCE_TENSOR_NO_INDICES,
                                          CUDNN_64BIT_INDICES));
  SUCCEEDS(cudnnGetReduceTensorDescriptor(how, &op, &compute, &nan, &indices, &type));
  CHECK(op == CUDNN_REDUCE_TENSOR_NORM2 && compute == CUDNN_DATA_FLOAT &&
        nan == CUDNN_PROPAGATE_NAN && indices == CUDNN_REDUCE_TENSOR_NO_INDICES &&
        type == CUDNN_64BIT_INDICES);
  cudnnTensorDescriptor_t a = NULL, c = NULL;
  SUCCEEDS(cudnnCreateTensorDescriptor(&a));
  SUCCEEDS(cudnnCreateTensorDescriptor(&c));
  SUCCEEDS(cudnnSetTensor4dDescriptor(a, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 2, 3, 1, 1));
  SUCCEEDS(cudnnSetTensor4dDescriptor(c, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 2, 2, 1, 1));
  size_t bytes = 0;
  float numbers[6] = {0};
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnGetReductionWorkspaceSize(handle, how, a, c, &bytes));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnGetReductionIndicesSize(handle, how, a, a, NULL));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnReduceTensor(handle, how, NULL, 0, NULL, 0, NULL, a, numbers, NULL, c, numbers));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnReduceTensor(handle, how, NULL, 0, NULL, 0, NULL, a, NULL, NULL, a, numbers));
  SUCCEEDS(cudnnDestroyTensorDescriptor(a));
  SUCCEEDS(cudnnDestroyTensorDescriptor(c));
  SUCCEEDS(cudnnDestroyReduceTensorDescriptor(how));
}

int main(void) {
  SUCCEEDS(cudnnCreate(&handle));
  for (int op = 0; op < OPERATIONS; ++op)
    for (int v = 0; v < VARIANTS; ++v) {
      reduce(op, reduced[v % REDUCED], &variants[v]);
      reduce(op, reduced[(v + op + 1) % REDUCED], &variants[v]);
    }
  widths_and_nan();
  misuse();
  SUCCEEDS(cudnnDestroy(handle));
  return failures;
}
