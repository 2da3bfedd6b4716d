/* Dropout: the mask, the advance of the generator, and descriptors restored from saved states. */
#include <math.h>

#include "tensors.h"

static cudnnHandle_t handle;

typedef struct {
  cudnnDropoutDescriptor_t dropout;
  void* states;
  size_t states_bytes;
} Generator;

static Generator make_generator(float probability, unsigned long long seed) {
  Generator created = {NULL, NULL, 0};
  SUCCEEDS(cudnnCreateDropoutDescriptor(&created.dropout));
  SUCCEEDS(cudnnDropoutGetStatesSize(handle, &created.states_bytes));
  created.states = device_memory(created.states_bytes);
  SUCCEEDS(cudnnSetDropoutDescriptor(created.dropout, handle, probability, created.states,
                                     created.states_bytes, seed));
  return created;
}

static void destroy_generator(Generator* generator) {
  SUCCEEDS(cudnnDestroyDropoutDescriptor(generator->dropout));
  cudaFree(generator->states);
}

/* The documented graph: Philox by row-major index, or by memory index if the tensor is
 * contiguous. */
static Oracle* dropout_oracle(const Tensor* x, double probability, long long seed,
                              long long offset) {
  Json json = {"", ""};
  const Tensor flat = {x->dtype, 0, 1, {elements_of(x)}};
  const Tensor bits = {"bool", 0, 1, {elements_of(x)}};
  json_tensor(&json, "x", "input", &flat);
  json_tensor(&json, "dy", "input", &flat);
  json_tensor(&json, "y", "output", &flat);
  json_tensor(&json, "mask", "output", &bits);
  json_tensor(&json, "dx", "output", &flat);
  json_node(&json,
            "{\"op\":\"dropout_forward\",\"inputs\":{\"x\":\"x\"},\"outputs\":{\"y\":\"y\","
            "\"mask\":\"mask\"},\"attributes\":{\"probability\":%.17g,\"seed\":%lld,"
            "\"offset\":%lld}}",
            probability, seed, offset);
  json_node(&json,
            "{\"op\":\"dropout_backward\",\"inputs\":{\"dy\":\"dy\",\"mask\":\"mask\"},\"outputs\":"
            "{\"dx\":\"dx\"},\"attributes\":{\"probability\":%.17g}}",
            probability);
  return json_oracle(&json);
}

static void test_pass(const Tensor* x, float probability) {
  Generator g = make_generator(probability, 1234567890123ULL);
  cudnnTensorDescriptor_t desc = descriptor_of(x);
  size_t reserve_bytes = 0;
  SUCCEEDS(cudnnDropoutGetReserveSpaceSize(desc, &reserve_bytes));
  long long offset = 0;
  for (int draw = 0; draw < 3; ++draw) { /* each starts where the previous one ended */
    Oracle* o = dropout_oracle(x, (double)probability, 1234567890123LL, offset);
    CHECK(reserve_bytes == (oracle_bytes(o, "mask") + 3) / 4 * 4);
    void* mask = oracle_device(o, "mask");
    SUCCEEDS(cudnnDropoutForward(handle, g.dropout, desc, oracle_device(o, "x"), desc,
                                 oracle_device(o, "y"), mask, reserve_bytes));
    SUCCEEDS(cudnnDropoutBackward(handle, g.dropout, desc, oracle_device(o, "dy"), desc,
                                  oracle_device(o, "dx"), mask, reserve_bytes));
    oracle_check(o);
    if (probability > 0.0F && probability < 1.0F) offset += (elements_of(x) + 3) / 4;
    oracle_destroy(o);
  }
  SUCCEEDS(cudnnDestroyTensorDescriptor(desc));
  destroy_generator(&g);
}

/* Padded rows, and a result in another axis order: kept elements are scaled, the rest is 0, and the
 * backward pass agrees. */
static void test_strided(void) {
  enum { ROWS = 5, COLUMNS = 7, PITCH = 9 };
  const int dims[] = {ROWS, COLUMNS, 1, 1}, pitched[] = {PITCH, 1, 1, 1};
  const int turned[] = {1, ROWS, 1, 1};
  cudnnTensorDescriptor_t from = NULL, to = NULL;
  SUCCEEDS(cudnnCreateTensorDescriptor(&from));
  SUCCEEDS(cudnnCreateTensorDescriptor(&to));
  SUCCEEDS(cudnnSetTensorNdDescriptor(from, CUDNN_DATA_FLOAT, 4, dims, pitched));
  SUCCEEDS(cudnnSetTensorNdDescriptor(to, CUDNN_DATA_FLOAT, 4, dims, turned));
  Generator g = make_generator(0.25F, 9);
  float x[ROWS * PITCH], y[ROWS * COLUMNS], dx[ROWS * PITCH];
  for (int i = 0; i < ROWS * PITCH; ++i) x[i] = 1.0F + (float)i;
  size_t bytes = 0;
  SUCCEEDS(cudnnDropoutGetReserveSpaceSize(from, &bytes));
  void *x_device = device_copy(x, sizeof x), *y_device = device_memory(sizeof y);
  void *dx_device = device_copy(x, sizeof x), *reserve = device_memory(bytes);
  SUCCEEDS(cudnnDropoutForward(handle, g.dropout, from, x_device, to, y_device, reserve, bytes));
  SUCCEEDS(cudnnDropoutBackward(handle, g.dropout, to, y_device, from, dx_device, reserve, bytes));
  CHECK(cudaMemcpy(y, y_device, sizeof y, cudaMemcpyDeviceToHost) == cudaSuccess);
  CHECK(cudaMemcpy(dx, dx_device, sizeof dx, cudaMemcpyDeviceToHost) == cudaSuccess);
  int retained = 0;
  for (int r = 0; r < ROWS; ++r)
    for (int c = 0; c < COLUMNS; ++c) {
      const float value = y[c * ROWS + r], scaled = x[r * PITCH + c] / 0.75F;
      CHECK(value == 0.0F || fabsf(value - scaled) <= 1e-5F * scaled);
      CHECK(fabsf(dx[r * PITCH + c] - value / 0.75F) <= 1e-5F * scaled);
      retained += value != 0.0F;
    }
  CHECK(retained > ROWS * COLUMNS / 2 && retained < ROWS * COLUMNS);
  for (int r = 0; r < ROWS; ++r) /* padding is not written */
    for (int c = COLUMNS; c < PITCH; ++c)
      CHECK(r == ROWS - 1 || dx[r * PITCH + c] == x[r * PITCH + c]);
  cudaFree(x_device), cudaFree(y_device), cudaFree(dx_device), cudaFree(reserve);
  SUCCEEDS(cudnnDestroyTensorDescriptor(from));
  SUCCEEDS(cudnnDestroyTensorDescriptor(to));
  destroy_generator(&g);
}

/* A descriptor restored from the states continues, whatever its seed; cudnnSetDropoutDescriptor
 * restarts. Also in place.
 * */
static void test_restore(void) {
  enum { COUNT = 1000 };
  const Tensor tensor = {"f32", 0, 4, {COUNT, 1, 1, 1}};
  cudnnTensorDescriptor_t desc = descriptor_of(&tensor);
  Generator g = make_generator(0.5F, 42);
  cudnnDropoutDescriptor_t other = NULL;
  SUCCEEDS(cudnnCreateDropoutDescriptor(&other));
  size_t bytes = 0;
  SUCCEEDS(cudnnDropoutGetReserveSpaceSize(desc, &bytes));
  void* reserve = device_memory(bytes);
  float draws[4][COUNT];
  for (int draw = 0; draw < 4; ++draw) {
    for (int i = 0; i < COUNT; ++i) draws[draw][i] = 1.0F;
    void* data = device_copy(draws[draw], sizeof draws[draw]);
    if (draw == 2)
      SUCCEEDS(cudnnSetDropoutDescriptor(g.dropout, handle, 0.5F, g.states, g.states_bytes, 42));
    if (draw % 2 == 1)
      SUCCEEDS(cudnnRestoreDropoutDescriptor(other, handle, 0.5F, g.states, g.states_bytes, 0));
    SUCCEEDS(cudnnDropoutForward(handle, draw % 2 == 1 ? other : g.dropout, desc, data, desc, data,
                                 reserve, bytes));
    CHECK(cudaMemcpy(draws[draw], data, sizeof draws[draw], cudaMemcpyDeviceToHost) == cudaSuccess);
    cudaFree(data);
  }
  CHECK(memcmp(draws[0], draws[1], sizeof draws[0]) != 0);
  CHECK(memcmp(draws[0], draws[2], sizeof draws[0]) == 0);
  CHECK(memcmp(draws[1], draws[3], sizeof draws[0]) == 0);
  int retained = 0;
  for (int i = 0; i < COUNT; ++i) {
    CHECK(draws[0][i] == 0.0F || draws[0][i] == 2.0F);
    retained += draws[0][i] == 2.0F;
  }
  CHECK(retained > 400 && retained < 600);

  float probability = 0.0F;
  void* states = NULL;
  unsigned long long seed = 0;
  SUCCEEDS(cudnnGetDropoutDescriptor(g.dropout, handle, &probability, &states, &seed));
  CHECK(probability == 0.5F && states == g.states && seed == 42);
  cudaFree(reserve);
  SUCCEEDS(cudnnDestroyDropoutDescriptor(other));
  SUCCEEDS(cudnnDestroyTensorDescriptor(desc));
  destroy_generator(&g);
}

static void test_misuse(void) {
  const Tensor x = {"f32", 0, 4, {2, 3, 1, 1}}, smaller = {"f32", 0, 4, {2, 2, 1, 1}};
  const Tensor half = {"f16", 0, 4, {2, 3, 1, 1}};
  cudnnTensorDescriptor_t desc = descriptor_of(&x), less = descriptor_of(&smaller);
  cudnnTensorDescriptor_t other = descriptor_of(&half);
  cudnnDropoutDescriptor_t dropout = NULL;
  float* m = device_memory(256);
  size_t bytes = 0;
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnCreateDropoutDescriptor(NULL));
  SUCCEEDS(cudnnCreateDropoutDescriptor(&dropout));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnDropoutForward(handle, dropout, desc, m, desc, m, m + 32, 32));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnSetDropoutDescriptor(dropout, handle, 1.5F, m, 64, 1));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnSetDropoutDescriptor(dropout, handle, NAN, m, 64, 1));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnSetDropoutDescriptor(dropout, NULL, 0.5F, m, 64, 1));
  RETURNS(CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT,
          cudnnSetDropoutDescriptor(dropout, handle, 0.5F, m, 1, 1));
  SUCCEEDS(cudnnSetDropoutDescriptor(dropout, handle, 0.0F, NULL, 0, 0)); /* draws nothing */
  SUCCEEDS(cudnnDropoutForward(handle, dropout, desc, m, desc, m + 16, m + 32, 32));
  SUCCEEDS(cudnnRestoreDropoutDescriptor(dropout, handle, 0.5F, NULL, 0, 0));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnDropoutForward(handle, dropout, desc, m, desc, m + 16, m + 32, 32));
  SUCCEEDS(cudnnSetDropoutDescriptor(dropout, handle, 0.5F, m + 40, 64, 1));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnDropoutForward(handle, dropout, desc, m, less, m + 16, m + 32, 32));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnDropoutForward(handle, dropout, desc, m, other, m + 16, m + 32, 32));
  RETURNS(CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT,
          cudnnDropoutForward(handle, dropout, desc, m, desc, m + 16, m + 32, 0));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnDropoutBackward(handle, dropout, desc, m, desc, NULL, m + 32, 32));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnDropoutGetReserveSpaceSize(NULL, &bytes));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnDropoutGetStatesSize(handle, NULL));
  SUCCEEDS(cudnnDestroyDropoutDescriptor(dropout));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnDestroyDropoutDescriptor(dropout));
  SUCCEEDS(cudnnDestroyTensorDescriptor(desc));
  SUCCEEDS(cudnnDestroyTensorDescriptor(less));
  SUCCEEDS(cudnnDestroyTensorDescriptor(other));
  cudaFree(m);
}

int main(void) {
  SUCCEEDS(cudnnCreate(&handle));
  static const char* const kTypes[] = {"f32", "f16", "bf16", "f64"};
  for (int type = 0; type < 4; ++type)
    for (int nhwc = 0; nhwc < 2; ++nhwc) {
      const Tensor x = {kTypes[type], nhwc, 4, {3, 5, 7, 2}};
      test_pass(&x, 0.3F);
    }
  const Tensor odd = {"f32", 0, 5, {1, 3, 1, 7, 1}};
  test_pass(&odd, 0.0F);
  test_pass(&odd, 1.0F);
  test_pass(&odd, 0.9F);
  test_strided();
  test_restore();
  test_misuse();
  SUCCEEDS(cudnnDestroy(handle));
  return failures;
}
