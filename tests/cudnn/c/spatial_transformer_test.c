/* Sampling grids and bilinear sampling, forward and backward. */
#include "tensors.h"

static cudnnHandle_t handle;

typedef struct {
  Tensor x; /* y has the same batch and channels */
  int out[3];
  double alpha, beta, alpha_grid, beta_grid;
} Case;

static Tensor y_of(const Case* c) {
  Tensor y = c->x;
  for (int i = 2; i < y.rank; ++i) y.dims[i] = c->out[i - 2];
  return y;
}
static Tensor grid_of(const Case* c) {
  Tensor grid = {c->x.dtype, 0, c->x.rank, {c->x.dims[0]}};
  for (int i = 2; i < c->x.rank; ++i) grid.dims[i - 1] = c->out[i - 2];
  grid.dims[c->x.rank - 1] = c->x.rank - 2;
  return grid;
}
static Tensor theta_of(const Case* c) {
  const Tensor theta = {c->x.dtype, 0, 3, {c->x.dims[0], c->x.rank - 2, c->x.rank - 1}};
  return theta;
}

static cudnnSpatialTransformerDescriptor_t transformer_of(const Case* c) {
  const Tensor y = y_of(c);
  cudnnSpatialTransformerDescriptor_t descriptor = NULL;
  SUCCEEDS(cudnnCreateSpatialTransformerDescriptor(&descriptor));
  SUCCEEDS(cudnnSetSpatialTransformerNdDescriptor(descriptor, CUDNN_SAMPLER_BILINEAR,
                                                  data_type(c->x.dtype), y.rank, y.dims));
  return descriptor;
}

static void test_generator(const Case* c) {
  const Tensor grid = grid_of(c), theta = theta_of(c);
  Json json = {"", ""};
  char size[32] = "";
  for (int i = 0; i < c->x.rank - 2; ++i)
    snprintf(size + strlen(size), sizeof size - strlen(size), i > 0 ? ",%d" : "%d", c->out[i]);
  json_tensor(&json, "theta", "input", &theta);
  json_tensor(&json, "dgrid", "input", &grid);
  json_tensor(&json, "grid", "output", &grid);
  json_tensor(&json, "dtheta", "output", &theta);
  json_node(&json,
            "{\"op\":\"grid_generator_forward\",\"inputs\":{\"theta\":\"theta\"},\"outputs\":"
            "{\"grid\":\"grid\"},\"attributes\":{\"size\":[%s],\"align_corners\":true}}",
            size);
  json_node(&json,
            "{\"op\":\"grid_generator_backward\",\"inputs\":{\"dgrid\":\"dgrid\"},\"outputs\":"
            "{\"dtheta\":\"dtheta\"},\"attributes\":{\"size\":[%s],\"align_corners\":true}}",
            size);
  Oracle* o = json_oracle(&json);
  cudnnSpatialTransformerDescriptor_t transformer = transformer_of(c);
  SUCCEEDS(cudnnSpatialTfGridGeneratorForward(handle, transformer, oracle_device(o, "theta"),
                                              oracle_device(o, "grid")));
  SUCCEEDS(cudnnSpatialTfGridGeneratorBackward(handle, transformer, oracle_device(o, "dgrid"),
                                               oracle_device(o, "dtheta")));
  oracle_check(o);
  oracle_destroy(o);
  SUCCEEDS(cudnnDestroySpatialTransformerDescriptor(transformer));
}

static void test_sampler(const Case* c) {
  const Tensor y = y_of(c), grid = grid_of(c);
  const char* compute = scalar_type(c->x.dtype);
  Json json = {"", ""};
  static const char* const kDataTensors[] = {"x", "dx_before"};
  for (int i = 0; i < 2; ++i) json_tensor(&json, kDataTensors[i], "input", &c->x);
  json_tensor(&json, "dx", "output", &c->x);
  json_tensor(&json, "grid", "input", &grid);
  json_tensor(&json, "dgrid_before", "input", &grid);
  json_tensor(&json, "dgrid", "output", &grid);
  json_tensor(&json, "y_before", "input", &y);
  json_tensor(&json, "dy", "input", &y);
  json_tensor(&json, "y", "output", &y);
  json_intermediate(&json, "only_y", compute);
  json_intermediate(&json, "only_dx", compute);
  json_intermediate(&json, "only_dgrid", compute);
  json_node(&json,
            "{\"op\":\"grid_sample_forward\",\"inputs\":{\"x\":\"x\",\"grid\":\"grid\"},"
            "\"outputs\":{\"y\":\"only_y\"},\"attributes\":{\"mode\":\"bilinear\",\"padding\":"
            "\"zeros\",\"align_corners\":true}}");
  json_node(&json,
            "{\"op\":\"grid_sample_backward\",\"inputs\":{\"x\":\"x\",\"grid\":\"grid\",\"dy\":"
            "\"dy\"},\"outputs\":{\"dx\":\"only_dx\",\"dgrid\":\"only_dgrid\"},\"attributes\":{"
            "\"mode\":\"bilinear\",\"padding\":\"zeros\",\"align_corners\":true}}");
  json_blend(&json, "only_y", c->alpha, "y_before", c->beta, "y");
  json_blend(&json, "only_dx", c->alpha, "dx_before", c->beta, "dx");
  json_blend(&json, "only_dgrid", c->alpha_grid, "dgrid_before", c->beta_grid, "dgrid");
  Oracle* o = json_oracle(&json);
  oracle_fill(o, "grid", -1.2, 1.2); /* some points are outside the image */
  start_from(o, "y", "y_before");
  start_from(o, "dx", "dx_before");
  start_from(o, "dgrid", "dgrid_before");

  cudnnSpatialTransformerDescriptor_t transformer = transformer_of(c);
  cudnnTensorDescriptor_t x_desc = descriptor_of(&c->x), y_desc = descriptor_of(&y);
  const Number alpha = number(c->x.dtype, c->alpha), beta = number(c->x.dtype, c->beta);
  const Number alpha_grid = number(c->x.dtype, c->alpha_grid);
  const Number beta_grid = number(c->x.dtype, c->beta_grid);
  SUCCEEDS(cudnnSpatialTfSamplerForward(handle, transformer, &alpha, x_desc, oracle_device(o, "x"),
                                        oracle_device(o, "grid"), &beta, y_desc,
                                        oracle_device(o, "y")));
  SUCCEEDS(cudnnSpatialTfSamplerBackward(handle, transformer, &alpha, x_desc, oracle_device(o, "x"),
                                         &beta, x_desc, oracle_device(o, "dx"), &alpha_grid, y_desc,
                                         oracle_device(o, "dy"), oracle_device(o, "grid"),
                                         &beta_grid, oracle_device(o, "dgrid")));
  oracle_check(o);
  oracle_destroy(o);
  SUCCEEDS(cudnnDestroyTensorDescriptor(x_desc));
  SUCCEEDS(cudnnDestroyTensorDescriptor(y_desc));
  SUCCEEDS(cudnnDestroySpatialTransformerDescriptor(transformer));
}

/* The identity matrix samples every element: x first, corners at -1 and 1. */
static void test_identity(void) {
  enum { HEIGHT = 2, WIDTH = 3 };
  const float theta[] = {1, 0, 0, 0, 1, 0}, image[] = {1, 2, 3, 4, 5, 6};
  const int dims[] = {1, 1, HEIGHT, WIDTH};
  const Tensor tensor = {"f32", 0, 4, {1, 1, HEIGHT, WIDTH}};
  cudnnSpatialTransformerDescriptor_t transformer = NULL;
  cudnnTensorDescriptor_t desc = descriptor_of(&tensor);
  SUCCEEDS(cudnnCreateSpatialTransformerDescriptor(&transformer));
  SUCCEEDS(cudnnSetSpatialTransformerNdDescriptor(transformer, CUDNN_SAMPLER_BILINEAR,
                                                  CUDNN_DATA_FLOAT, 4, dims));
  float grid[HEIGHT * WIDTH * 2], result[HEIGHT * WIDTH];
  void *theta_device = device_copy(theta, sizeof theta), *x = device_copy(image, sizeof image);
  void *grid_device = device_memory(sizeof grid), *y = device_memory(sizeof result);
  const float one = 1.0F, zero = 0.0F;
  SUCCEEDS(cudnnSpatialTfGridGeneratorForward(handle, transformer, theta_device, grid_device));
  SUCCEEDS(cudnnSpatialTfSamplerForward(handle, transformer, &one, desc, x, grid_device, &zero,
                                        desc, y));
  CHECK(cudaMemcpy(grid, grid_device, sizeof grid, cudaMemcpyDeviceToHost) == cudaSuccess);
  CHECK(cudaMemcpy(result, y, sizeof result, cudaMemcpyDeviceToHost) == cudaSuccess);
  const float expected[] = {-1, -1, 0, -1, 1, -1, -1, 1, 0, 1, 1, 1};
  for (int i = 0; i < HEIGHT * WIDTH * 2; ++i) CHECK(grid[i] == expected[i]);
  for (int i = 0; i < HEIGHT * WIDTH; ++i) CHECK(result[i] == image[i]);
  cudaFree(theta_device), cudaFree(grid_device), cudaFree(x), cudaFree(y);
  SUCCEEDS(cudnnDestroyTensorDescriptor(desc));
  SUCCEEDS(cudnnDestroySpatialTransformerDescriptor(transformer));
}

static void test_misuse(void) {
  const Case c = {{"f32", 0, 4, {1, 2, 3, 3}}, {2, 2}, 1, 0, 1, 0};
  const Tensor y = y_of(&c);
  const int dims[] = {1, 2, 0, 2};
  const float one = 1.0F, zero = 0.0F;
  float* m = device_memory(1024);
  cudnnSpatialTransformerDescriptor_t transformer = NULL;
  cudnnTensorDescriptor_t x_desc = descriptor_of(&c.x), y_desc = descriptor_of(&y);
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnCreateSpatialTransformerDescriptor(NULL));
  SUCCEEDS(cudnnCreateSpatialTransformerDescriptor(&transformer));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnSpatialTfGridGeneratorForward(handle, transformer, m, m + 64));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnSetSpatialTransformerNdDescriptor(transformer, CUDNN_SAMPLER_BILINEAR,
                                                 CUDNN_DATA_FLOAT, 4, dims));
  RETURNS(CUDNN_STATUS_NOT_SUPPORTED,
          cudnnSetSpatialTransformerNdDescriptor(transformer, CUDNN_SAMPLER_BILINEAR,
                                                 CUDNN_DATA_FLOAT, 3, y.dims));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnSetSpatialTransformerNdDescriptor(transformer, CUDNN_SAMPLER_BILINEAR,
                                                 CUDNN_DATA_FLOAT, 4, NULL));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnSetSpatialTransformerNdDescriptor(transformer, (cudnnSamplerType_t)1,
                                                 CUDNN_DATA_FLOAT, 4, y.dims));
  SUCCEEDS(cudnnSetSpatialTransformerNdDescriptor(transformer, CUDNN_SAMPLER_BILINEAR,
                                                  CUDNN_DATA_FLOAT, 4, y.dims));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnSpatialTfGridGeneratorForward(handle, transformer, NULL, m));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnSpatialTfSamplerForward(handle, transformer, &one, x_desc, m,
                                                               m + 64, &zero, x_desc, m + 128));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnSpatialTfSamplerForward(handle, transformer, &one, x_desc, m,
                                                               NULL, &zero, y_desc, m + 128));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnSpatialTfSamplerBackward(handle, transformer, &one, x_desc, m, &zero, y_desc, m + 64,
                                        &one, y_desc, m + 96, m + 128, &zero, m + 160));
  SUCCEEDS(cudnnDestroySpatialTransformerDescriptor(transformer));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnSpatialTfGridGeneratorForward(handle, transformer, m, m + 64));
  SUCCEEDS(cudnnDestroyTensorDescriptor(x_desc));
  SUCCEEDS(cudnnDestroyTensorDescriptor(y_desc));
  cudaFree(m);
}

int main(void) {
  SUCCEEDS(cudnnCreate(&handle));
  const Case cases[] = {
      {{"f32", 0, 4, {2, 3, 5, 7}}, {4, 6}, 1, 0, 1, 0},
      {{"f32", 1, 4, {2, 3, 5, 4}}, {3, 9}, 2, 0.5, -1, 2},
      {{"f64", 0, 4, {1, 2, 4, 3}}, {4, 3}, 0.5, 1, 1, 0},
      {{"f16", 0, 4, {2, 2, 3, 3}}, {5, 5}, 1, 0, 1, 0},
      {{"f32", 0, 5, {2, 2, 3, 4, 2}}, {2, 3, 4}, 1, 0, 0.5, 1},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
    const int before = failures;
    test_generator(&cases[i]);
    test_sampler(&cases[i]);
    if (failures > before) fprintf(stderr, "in case %d\n", (int)i);
  }
  test_identity();
  test_misuse();
  SUCCEEDS(cudnnDestroy(handle));
  return failures;
}
