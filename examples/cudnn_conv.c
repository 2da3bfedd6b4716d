/* A convolution written for cuDNN: descriptors, the fastest algorithm, a workspace, the call, and a
 * check by plain loops. Nothing in it depends on Ashlar: it runs with any libcudnn.so.9 and
 * libcudart, NVIDIA's or ours, with or without a GPU. */
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void check_cuda(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return;
  fprintf(stderr, "%s: %s\n", call, cudaGetErrorString(error));
  exit(1);
}
static void check_cudnn(cudnnStatus_t status, const char* call) {
  char sentence[512] = "";
  if (status == CUDNN_STATUS_SUCCESS) return;
  cudnnGetLastErrorString(sentence, sizeof sentence);
  fprintf(stderr, "%s: %s: %s\n", call, cudnnGetErrorString(status), sentence);
  exit(1);
}
#define CUDA(call) check_cuda(call, #call)
#define CUDNN(call) check_cudnn(call, #call)

/* 4 images of 16 channels, 32 filters of 5 x 5 with stride 2. */
enum { N = 4, C = 16, H = 28, W = 30, K = 32, R = 5, S = 5, PAD = 2, STRIDE = 2 };
enum { P = (H + 2 * PAD - R) / STRIDE + 1, Q = (W + 2 * PAD - S) / STRIDE + 1 };

static float x[N][C][H][W], w[K][C][R][S], y[N][K][P][Q];

static void fill(float* values, size_t count) {
  size_t i;
  for (i = 0; i < count; ++i) values[i] = (float)rand() / (float)RAND_MAX - 0.5F;
}

/* One output element in double precision. */
static double convolved(int n, int k, int p, int q) {
  double sum = 0.0;
  int c, r, s;
  for (c = 0; c < C; ++c)
    for (r = 0; r < R; ++r)
      for (s = 0; s < S; ++s) {
        const int h = p * STRIDE - PAD + r, v = q * STRIDE - PAD + s;
        if (h >= 0 && h < H && v >= 0 && v < W)
          sum += (double)x[n][c][h][v] * (double)w[k][c][r][s];
      }
  return sum;
}

int main(void) {
  cudnnHandle_t handle;
  cudnnTensorDescriptor_t x_desc, y_desc;
  cudnnFilterDescriptor_t w_desc;
  cudnnConvolutionDescriptor_t conv_desc;
  cudnnConvolutionFwdAlgoPerf_t found[CUDNN_CONVOLUTION_FWD_ALGO_COUNT];
  int count = 0, dims[4], i, n, k, p, q;
  size_t workspace_bytes = 0;
  void *device_x, *device_w, *device_y, *workspace = NULL;
  const float alpha = 1.0F, beta = 0.0F;
  double worst = 0.0;

  fill(&x[0][0][0][0], sizeof x / sizeof(float));
  fill(&w[0][0][0][0], sizeof w / sizeof(float));

  CUDNN(cudnnCreate(&handle));
  CUDNN(cudnnCreateTensorDescriptor(&x_desc));
  CUDNN(cudnnSetTensor4dDescriptor(x_desc, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, N, C, H, W));
  CUDNN(cudnnCreateFilterDescriptor(&w_desc));
  CUDNN(cudnnSetFilter4dDescriptor(w_desc, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, K, C, R, S));
  CUDNN(cudnnCreateConvolutionDescriptor(&conv_desc));
  CUDNN(cudnnSetConvolution2dDescriptor(conv_desc, PAD, PAD, STRIDE, STRIDE, 1, 1,
                                        CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
  CUDNN(cudnnSetConvolutionMathType(conv_desc, CUDNN_FMA_MATH)); /* no TF32: checked below */
  CUDNN(cudnnGetConvolution2dForwardOutputDim(conv_desc, x_desc, w_desc, &dims[0], &dims[1],
                                              &dims[2], &dims[3]));
  if (dims[0] != N || dims[1] != K || dims[2] != P || dims[3] != Q) return 1;
  CUDNN(cudnnCreateTensorDescriptor(&y_desc));
  CUDNN(cudnnSetTensor4dDescriptor(y_desc, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, dims[0], dims[1],
                                   dims[2], dims[3]));

  CUDNN(cudnnFindConvolutionForwardAlgorithm(handle, x_desc, w_desc, conv_desc, y_desc,
                                             CUDNN_CONVOLUTION_FWD_ALGO_COUNT, &count, found));
  printf("cuDNN %d\n", (int)cudnnGetVersion());
  for (i = 0; i < count; ++i)
    if (found[i].status == CUDNN_STATUS_SUCCESS)
      printf("algorithm %d: %.3f ms, workspace of %lu bytes\n", (int)found[i].algo,
             (double)found[i].time, (unsigned long)found[i].memory);
    else
      printf("algorithm %d: %s\n", (int)found[i].algo, cudnnGetErrorString(found[i].status));
  if (count == 0 || found[0].status != CUDNN_STATUS_SUCCESS) return 1;
  CUDNN(cudnnGetConvolutionForwardWorkspaceSize(handle, x_desc, w_desc, conv_desc, y_desc,
                                                found[0].algo, &workspace_bytes));

  CUDA(cudaMalloc(&device_x, sizeof x));
  CUDA(cudaMalloc(&device_w, sizeof w));
  CUDA(cudaMalloc(&device_y, sizeof y));
  if (workspace_bytes > 0) CUDA(cudaMalloc(&workspace, workspace_bytes));
  CUDA(cudaMemcpy(device_x, x, sizeof x, cudaMemcpyHostToDevice));
  CUDA(cudaMemcpy(device_w, w, sizeof w, cudaMemcpyHostToDevice));
  CUDNN(cudnnConvolutionForward(handle, &alpha, x_desc, device_x, w_desc, device_w, conv_desc,
                                found[0].algo, workspace, workspace_bytes, &beta, y_desc,
                                device_y));
  CUDA(cudaMemcpy(y, device_y, sizeof y, cudaMemcpyDeviceToHost));

  for (n = 0; n < N; ++n)
    for (k = 0; k < K; ++k)
      for (p = 0; p < P; ++p)
        for (q = 0; q < Q; ++q)
          worst = fmax(worst, fabs((double)y[n][k][p][q] - convolved(n, k, p, q)));
  printf("largest error of %d results: %.1e\n", N * K * P * Q, worst);

  CUDA(cudaFree(device_x));
  CUDA(cudaFree(device_w));
  CUDA(cudaFree(device_y));
  CUDA(cudaFree(workspace));
  CUDNN(cudnnDestroyTensorDescriptor(x_desc));
  CUDNN(cudnnDestroyTensorDescriptor(y_desc));
  CUDNN(cudnnDestroyFilterDescriptor(w_desc));
  CUDNN(cudnnDestroyConvolutionDescriptor(conv_desc));
  CUDNN(cudnnDestroy(handle));
  return worst < 1e-4 ? 0 : 1;
}
