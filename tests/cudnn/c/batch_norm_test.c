/* cudnnBatchNormalization* and cudnnNormalization*: training, inference and gradients, with and
 * without an activation and a residual add before it. */
#include <math.h>

#include "tensors.h"

enum { SPATIAL = CUDNN_BATCHNORM_SPATIAL, PER_ACTIVATION = CUDNN_BATCHNORM_PER_ACTIVATION };
enum { BN, BN_ACTIVATION, BN_ADD_ACTIVATION };

typedef struct {
  Tensor x;
  int mode, ops;
  cudnnActivationMode_t activation;
  double alpha, beta, alpha_params, beta_params;
  int has_running, has_saved;
  double momentum;
  int newer; /* the cudnnNormalization calls */
  int plain; /* the calls without Ex, where ops is BN */
} Case;

static cudnnHandle_t handle;
static const double kEpsilon = 1e-3;

typedef struct {
  cudnnTensorDescriptor_t x, params;
  cudnnActivationDescriptor_t activation;
  void *workspace, *reserve;
  size_t workspace_bytes, reserve_bytes;
} Setup;

static Tensor params_of(const Case* c) {
  Tensor params = c->x;
  params.dtype = scalar_type(c->x.dtype);
  params.nhwc = 0;
  params.dims[0] = 1;
  if (c->mode != PER_ACTIVATION)
    for (int i = 2; i < params.rank; ++i) params.dims[i] = 1;
  return params;
}

static cudnnNormMode_t norm_mode(const Case* c) {
  return c->mode == PER_ACTIVATION ? CUDNN_NORM_PER_ACTIVATION : CUDNN_NORM_PER_CHANNEL;
}

static Setup set_up(const Case* c, int backward) {
  Setup s = {0};
  const Tensor params = params_of(c);
  s.x = descriptor_of(&c->x);
  s.params = descriptor_of(&params);
  SUCCEEDS(cudnnCreateActivationDescriptor(&s.activation));
  SUCCEEDS(cudnnSetActivationDescriptor(s.activation, c->activation, CUDNN_NOT_PROPAGATE_NAN, 1.0));
  if (c->newer) {
    SUCCEEDS(cudnnGetNormalizationTrainingReserveSpaceSize(
        handle, norm_mode(c), (cudnnNormOps_t)c->ops, CUDNN_NORM_ALGO_STANDARD, s.activation, s.x,
        &s.reserve_bytes, 1));
    if (backward)
      SUCCEEDS(cudnnGetNormalizationBackwardWorkspaceSize(
          handle, norm_mode(c), (cudnnNormOps_t)c->ops, CUDNN_NORM_ALGO_STANDARD, s.x, s.x, s.x,
          s.x, s.x, s.params, s.activation, s.params, &s.workspace_bytes, 1));
    else
      SUCCEEDS(cudnnGetNormalizationForwardTrainingWorkspaceSize(
          handle, norm_mode(c), (cudnnNormOps_t)c->ops, CUDNN_NORM_ALGO_STANDARD, s.x, s.x, s.x,
          s.params, s.activation, s.params, &s.workspace_bytes, 1));
  } else {
    const cudnnBatchNormMode_t mode = (cudnnBatchNormMode_t)c->mode;
    const cudnnBatchNormOps_t ops = (cudnnBatchNormOps_t)c->ops;
    SUCCEEDS(cudnnGetBatchNormalizationTrainingExReserveSpaceSize(handle, mode, ops, s.activation,
                                                                  s.x, &s.reserve_bytes));
    if (backward)
      SUCCEEDS(cudnnGetBatchNormalizationBackwardExWorkspaceSize(
          handle, mode, ops, s.x, s.x, s.x, s.x, s.x, s.params, s.activation, &s.workspace_bytes));
    else
      SUCCEEDS(cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
          handle, mode, ops, s.x, s.x, s.x, s.params, s.activation, &s.workspace_bytes));
  }
  s.workspace = device_memory(s.workspace_bytes);
  s.reserve = device_memory(s.reserve_bytes);
  return s;
}

static void tear_down(Setup* s) {
  SUCCEEDS(cudnnDestroyTensorDescriptor(s->x));
  SUCCEEDS(cudnnDestroyTensorDescriptor(s->params));
  SUCCEEDS(cudnnDestroyActivationDescriptor(s->activation));
  cudaFree(s->workspace);
  cudaFree(s->reserve);
}

/* A tensor as norm nodes read it: in per-activation mode the elements of a sample are one axis.
 * `back` reshapes a result back. */
static void shaped(Json* json, const Case* c, const char* from, const char* to, const Tensor* full,
                   int back) {
  char dims[64] = "";
  if (c->mode != PER_ACTIVATION) {
    json_node(json, "{\"op\":\"pointwise\",\"inputs\":{\"x\":\"%s\"},\"outputs\":{\"y\":\"%s\"}}",
              from, to);
    return;
  }
  if (back)
    for (int i = 0; i < full->rank; ++i)
      snprintf(dims + strlen(dims), sizeof dims - strlen(dims), i > 0 ? ",%d" : "%d",
               full->dims[i]);
  else
    snprintf(dims, sizeof dims, "%d,%d", full->dims[0], elements_of(full) / full->dims[0]);
  json_node(json,
            "{\"op\":\"reshape\",\"inputs\":{\"x\":\"%s\"},\"outputs\":{\"y\":\"%s\"},"
            "\"attributes\":{\"dims\":[%s]}}",
            from, to, dims);
}

static const char* activation_mode(const Case* c) {
  return c->activation == CUDNN_ACTIVATION_TANH   ? "tanh_fwd"
         : c->activation == CUDNN_ACTIVATION_RELU ? "relu_fwd"
                                                  : "identity";
}

/* normed -> y */
static void finish_graph(Json* json, const Case* c, const Tensor* x) {
  const char* result = "normed";
  json_intermediate(json, "normed", scalar_type(x->dtype));
  if (c->ops == BN_ADD_ACTIVATION) {
    json_tensor(json, "z", "input", x);
    json_intermediate(json, "sum", scalar_type(x->dtype));
    json_blend(json, result, 1.0, "z", 1.0, "sum");
    result = "sum";
  }
  if (c->ops != BN) {
    json_intermediate(json, "active", scalar_type(x->dtype));
    json_node(json,
              "{\"op\":\"pointwise\",\"inputs\":{\"x\":\"%s\"},\"outputs\":{\"y\":\"active\"},"
              "\"attributes\":{\"mode\":\"%s\"}}",
              result, activation_mode(c));
    result = "active";
  }
  json_tensor(json, "y_before", "input", x);
  json_tensor(json, "y", "output", x);
  json_blend(json, result, c->alpha, "y_before", c->beta, "y");
}

static Oracle* training_oracle(const Case* c) {
  Json json = {"", ""};
  const Tensor params = params_of(c);
  char extra_in[128] = "", extra_out[256] = "";
  json_tensor(&json, "x", "input", &c->x);
  json_tensor(&json, "scale", "input", &params);
  json_tensor(&json, "bias", "input", &params);
  shaped(&json, c, "x", "flat_x", &c->x, 0);
  shaped(&json, c, "scale", "flat_scale", &params, 0);
  shaped(&json, c, "bias", "flat_bias", &params, 0);
  json_intermediate(&json, "flat_y", params.dtype);
  if (c->has_running) {
    json_tensor(&json, "mean_before", "input", &params);
    json_tensor(&json, "variance_before", "input", &params);
    json_tensor(&json, "mean", "output", &params);
    json_tensor(&json, "variance", "output", &params);
    shaped(&json, c, "mean_before", "flat_mean", &params, 0);
    shaped(&json, c, "variance_before", "flat_variance", &params, 0);
    shaped(&json, c, "next_mean", "mean", &params, 1);
    shaped(&json, c, "next_variance", "variance", &params, 1);
    strcat(extra_in, ",\"running_mean\":\"flat_mean\",\"running_var\":\"flat_variance\"");
    strcat(extra_out,
           ",\"next_running_mean\":\"next_mean\",\"next_running_var\":\"next_variance\"");
  }
  if (c->has_saved) {
    json_tensor(&json, "saved_mean", "output", &params);
    json_tensor(&json, "saved_inv", "output", &params);
    shaped(&json, c, "kept_mean", "saved_mean", &params, 1);
    shaped(&json, c, "kept_inv", "saved_inv", &params, 1);
    strcat(extra_out, ",\"out_mean\":\"kept_mean\",\"out_inv_variance\":\"kept_inv\"");
  }
  json_node(&json,
            "{\"op\":\"norm_forward\",\"inputs\":{\"x\":\"flat_x\",\"scale\":\"flat_scale\","
            "\"bias\":\"flat_bias\"%s},\"outputs\":{\"y\":\"flat_y\"%s},\"attributes\":{"
            "\"mode\":\"batch\",\"epsilon\":%.17g,\"momentum\":%.17g}}",
            extra_in, extra_out, kEpsilon, c->momentum);
  shaped(&json, c, "flat_y", "normed", &c->x, 1);
  finish_graph(&json, c, &c->x);
  return json_oracle(&json);
}

static void call_training(const Case* c, const Setup* s, Oracle* o) {
  const Number alpha = number(c->x.dtype, c->alpha), beta = number(c->x.dtype, c->beta);
  void *mean = NULL, *variance = NULL, *saved_mean = NULL, *saved_inv = NULL, *z = NULL;
  if (c->has_running) mean = oracle_device(o, "mean"), variance = oracle_device(o, "variance");
  if (c->has_saved) saved_mean = oracle_device(o, "saved_mean");
  if (c->has_saved) saved_inv = oracle_device(o, "saved_inv");
  if (c->ops == BN_ADD_ACTIVATION) z = oracle_device(o, "z");
  void *x = oracle_device(o, "x"), *y = oracle_device(o, "y");
  void *scale = oracle_device(o, "scale"), *bias = oracle_device(o, "bias");
  if (c->newer)
    SUCCEEDS(cudnnNormalizationForwardTraining(
        handle, norm_mode(c), (cudnnNormOps_t)c->ops, CUDNN_NORM_ALGO_PERSIST, &alpha, &beta, s->x,
        x, s->params, scale, bias, c->momentum, s->params, mean, variance, kEpsilon, saved_mean,
        saved_inv, s->activation, s->x, z, s->x, y, s->workspace, s->workspace_bytes, s->reserve,
        s->reserve_bytes, 1));
  else if (c->plain)
    SUCCEEDS(cudnnBatchNormalizationForwardTraining(
        handle, (cudnnBatchNormMode_t)c->mode, &alpha, &beta, s->x, x, s->x, y, s->params, scale,
        bias, c->momentum, mean, variance, kEpsilon, saved_mean, saved_inv));
  else
    SUCCEEDS(cudnnBatchNormalizationForwardTrainingEx(
        handle, (cudnnBatchNormMode_t)c->mode, (cudnnBatchNormOps_t)c->ops, &alpha, &beta, s->x, x,
        s->x, z, s->x, y, s->params, scale, bias, c->momentum, mean, variance, kEpsilon, saved_mean,
        saved_inv, s->activation, s->workspace, s->workspace_bytes, s->reserve, s->reserve_bytes));
}

static void test_training(const Case* c) {
  Setup s = set_up(c, 0);
  Oracle* o = training_oracle(c);
  if (c->has_running) {
    oracle_fill(o, "variance_before", 0.5, 2.0);
    start_from(o, "mean", "mean_before");
    start_from(o, "variance", "variance_before");
  }
  start_from(o, "y", "y_before");
  call_training(c, &s, o);
  oracle_check(o);
  oracle_destroy(o);
  tear_down(&s);
}

/* With an averaging factor of 1 the old running statistics are not read. */
static void test_first_average(void) {
  const Case c = {{"f32", 0, 4, {3, 4, 2, 3}},
                  SPATIAL,
                  BN,
                  CUDNN_ACTIVATION_IDENTITY,
                  1,
                  0,
                  1,
                  0,
                  1,
                  1,
                  1.0,
                  0,
                  0};
  Setup s = set_up(&c, 0);
  Oracle* o = training_oracle(&c);
  memset(oracle_host(o, "mean"), 0xff, oracle_bytes(o, "mean")); /* NaN */
  memset(oracle_host(o, "variance"), 0xff, oracle_bytes(o, "variance"));
  oracle_upload(o, "mean");
  oracle_upload(o, "variance");
  call_training(&c, &s, o);
  oracle_check(o);
  oracle_destroy(o);
  tear_down(&s);
}

static void test_inference(const Case* c) {
  Setup s = set_up(c, 0);
  Json json = {"", ""};
  const Tensor params = params_of(c);
  static const char* const kParameters[] = {"scale", "bias", "mean", "variance"};
  json_tensor(&json, "x", "input", &c->x);
  shaped(&json, c, "x", "flat_x", &c->x, 0);
  for (int i = 0; i < 4; ++i) {
    char flat[32];
    snprintf(flat, sizeof flat, "flat_%s", kParameters[i]);
    json_tensor(&json, kParameters[i], "input", &params);
    shaped(&json, c, kParameters[i], flat, &params, 0);
  }
  json_intermediate(&json, "flat_y", params.dtype);
  json_node(&json,
            "{\"op\":\"norm_forward\",\"inputs\":{\"x\":\"flat_x\",\"scale\":\"flat_scale\","
            "\"bias\":\"flat_bias\",\"running_mean\":\"flat_mean\",\"running_var\":"
            "\"flat_variance\"},\"outputs\":{\"y\":\"flat_y\"},\"attributes\":{\"mode\":\"batch\","
            "\"phase\":\"inference\",\"epsilon\":%.17g}}",
            kEpsilon);
  shaped(&json, c, "flat_y", "normed", &c->x, 1);
  finish_graph(&json, c, &c->x);
  Oracle* o = json_oracle(&json);
  oracle_fill(o, "variance", 0.5, 2.0);
  start_from(o, "y", "y_before");
  const Number alpha = number(c->x.dtype, c->alpha), beta = number(c->x.dtype, c->beta);
  void *scale = oracle_device(o, "scale"), *bias = oracle_device(o, "bias");
  void *mean = oracle_device(o, "mean"), *variance = oracle_device(o, "variance");
  if (c->newer)
    SUCCEEDS(cudnnNormalizationForwardInference(
        handle, norm_mode(c), (cudnnNormOps_t)c->ops, CUDNN_NORM_ALGO_STANDARD, &alpha, &beta, s.x,
        oracle_device(o, "x"), s.params, scale, bias, s.params, mean, variance, s.x,
        c->ops == BN_ADD_ACTIVATION ? oracle_device(o, "z") : NULL, s.activation, s.x,
        oracle_device(o, "y"), kEpsilon, 1));
  else
    SUCCEEDS(cudnnBatchNormalizationForwardInference(
        handle, (cudnnBatchNormMode_t)c->mode, &alpha, &beta, s.x, oracle_device(o, "x"), s.x,
        oracle_device(o, "y"), s.params, scale, bias, mean, variance, kEpsilon));
  oracle_check(o);
  oracle_destroy(o);
  tear_down(&s);
}

/* --- gradients --- */

static void json_number(Json* json, const char* name, const char* dtype, int rank, double value) {
  const size_t length = strlen(json->tensors);
  static const char* const kOnes[] = {"", "1", "1,1", "1,1,1", "1,1,1,1", "1,1,1,1,1"};
  snprintf(json->tensors + length, sizeof json->tensors - length,
           ",{\"name\":\"%s\",\"kind\":\"constant\",\"dtype\":\"%s\",\"dims\":[%s],\"value\":%g}",
           name, dtype, kOnes[rank], value);
}

/* The gradient at the input of the activation: dy where y > 0 for relu; for other modes the test
 * provides it as the input dz. Returns its name. */
static const char* before_activation(Json* json, const Case* c) {
  if (c->ops == BN) return "dy";
  if (c->activation != CUDNN_ACTIVATION_RELU) {
    json_tensor(json, "dz", "input", &c->x);
    return "dz";
  }
  json_tensor(json, "y", "input", &c->x);
  json_number(json, "zero", scalar_type(c->x.dtype), c->x.rank, 0.0);
  if (c->ops == BN_ADD_ACTIVATION)
    json_tensor(json, "dz", "output", &c->x);
  else
    json_intermediate(json, "dz", scalar_type(c->x.dtype));
  json_node(json,
            "{\"op\":\"pointwise\",\"inputs\":{\"x\":\"y\",\"b\":\"zero\"},\"outputs\":{\"y\":"
            "\"open\"},\"attributes\":{\"mode\":\"cmp_gt\"}}");
  json_node(json,
            "{\"op\":\"pointwise\",\"inputs\":{\"x\":\"dy\",\"b\":\"zero\",\"predicate\":\"open\"},"
            "\"outputs\":{\"y\":\"dz\"},\"attributes\":{\"mode\":\"binary_select\"}}");
  return "dz";
}

static Oracle* backward_oracle(const Case* c) {
  Json json = {"", ""};
  const Tensor params = params_of(c);
  const char* saved = "";
  json_tensor(&json, "x", "input", &c->x);
  json_tensor(&json, "dy", "input", &c->x);
  json_tensor(&json, "scale", "input", &params);
  shaped(&json, c, "x", "flat_x", &c->x, 0);
  shaped(&json, c, "scale", "flat_scale", &params, 0);
  shaped(&json, c, before_activation(&json, c), "flat_dy", &c->x, 0);
  if (c->has_saved) {
    json_tensor(&json, "saved_mean", "input", &params);
    json_tensor(&json, "saved_inv", "input", &params);
    shaped(&json, c, "saved_mean", "flat_mean", &params, 0);
    shaped(&json, c, "saved_inv", "flat_inv", &params, 0);
    saved = ",\"mean\":\"flat_mean\",\"inv_variance\":\"flat_inv\"";
  }
  json_intermediate(&json, "flat_dx", params.dtype);
  json_intermediate(&json, "only_dx", params.dtype);
  json_node(&json,
            "{\"op\":\"norm_backward\",\"inputs\":{\"x\":\"flat_x\",\"dy\":\"flat_dy\",\"scale\":"
            "\"flat_scale\"%s},\"outputs\":{\"dx\":\"flat_dx\",\"dscale\":\"flat_dscale\","
            "\"dbias\":\"flat_dbias\"},\"attributes\":{\"mode\":\"batch\",\"epsilon\":%.17g}}",
            saved, kEpsilon);
  shaped(&json, c, "flat_dx", "only_dx", &c->x, 1);
  shaped(&json, c, "flat_dscale", "only_dscale", &params, 1);
  shaped(&json, c, "flat_dbias", "only_dbias", &params, 1);
  json_tensor(&json, "dx_before", "input", &c->x);
  json_tensor(&json, "dx", "output", &c->x);
  json_blend(&json, "only_dx", c->alpha, "dx_before", c->beta, "dx");
  static const char* const kNames[2][3] = {{"only_dscale", "dscale_before", "dscale"},
                                           {"only_dbias", "dbias_before", "dbias"}};
  for (int i = 0; i < 2; ++i) {
    json_tensor(&json, kNames[i][1], "input", &params);
    json_tensor(&json, kNames[i][2], "output", &params);
    json_blend(&json, kNames[i][0], c->alpha_params, kNames[i][1], c->beta_params, kNames[i][2]);
  }
  return json_oracle(&json);
}

static void copy_tensor(Oracle* to, const char* input, Oracle* from, const char* tensor) {
  memcpy(oracle_host(to, input), oracle_host(from, tensor), oracle_bytes(to, input));
  oracle_upload(to, input);
}

static void call_backward(const Case* c, const Setup* s, Oracle* o, void* dz) {
  const Number alpha = number(c->x.dtype, c->alpha), beta = number(c->x.dtype, c->beta);
  const Number alpha_params = number(c->x.dtype, c->alpha_params);
  const Number beta_params = number(c->x.dtype, c->beta_params);
  void *mean = NULL, *inv = NULL;
  if (c->has_saved) mean = oracle_device(o, "saved_mean"), inv = oracle_device(o, "saved_inv");
  void *x = oracle_device(o, "x"), *dy = oracle_device(o, "dy"), *dx = oracle_device(o, "dx");
  void *scale = oracle_device(o, "scale"), *dscale = oracle_device(o, "dscale");
  void* dbias = oracle_device(o, "dbias");
  if (c->newer)
    SUCCEEDS(cudnnNormalizationBackward(
        handle, norm_mode(c), (cudnnNormOps_t)c->ops, CUDNN_NORM_ALGO_STANDARD, &alpha, &beta,
        &alpha_params, &beta_params, s->x, x, NULL, NULL, s->x, dy, s->x, dz, s->x, dx, s->params,
        scale, NULL, dscale, dbias, kEpsilon, s->params, mean, inv, s->activation, s->workspace,
        s->workspace_bytes, s->reserve, s->reserve_bytes, 1));
  else if (c->plain)
    SUCCEEDS(cudnnBatchNormalizationBackward(
        handle, (cudnnBatchNormMode_t)c->mode, &alpha, &beta, &alpha_params, &beta_params, s->x, x,
        s->x, dy, s->x, dx, s->params, scale, dscale, dbias, kEpsilon, mean, inv));
  else
    SUCCEEDS(cudnnBatchNormalizationBackwardEx(
        handle, (cudnnBatchNormMode_t)c->mode, (cudnnBatchNormOps_t)c->ops, &alpha, &beta,
        &alpha_params, &beta_params, s->x, x, NULL, NULL, s->x, dy, s->x, dz, s->x, dx, s->params,
        scale, NULL, dscale, dbias, kEpsilon, mean, inv, s->activation, s->workspace,
        s->workspace_bytes, s->reserve, s->reserve_bytes));
}

/* dz = dy * (1 - y^2), contiguous f32. */
static void check_tanh_gradient(Oracle* forward, Oracle* o) {
  const float *y = oracle_host(forward, "y"), *dy = oracle_host(o, "dy"),
              *dz = oracle_host(o, "dz");
  for (size_t i = 0; i < oracle_bytes(o, "dz") / sizeof(float); ++i)
    CHECK(fabsf(dz[i] - dy[i] * (1.0F - y[i] * y[i])) < 1e-5F);
}

static void test_backward(const Case* c) {
  Setup s = set_up(c, 1);
  Case plain_case = *c;
  plain_case.alpha = 1.0, plain_case.beta = 0.0;
  plain_case.has_running = 0, plain_case.has_saved = 1;
  Setup forward_setup = set_up(&plain_case, 0);
  Oracle* forward = training_oracle(&plain_case);
  call_training(&plain_case, &forward_setup, forward);
  oracle_check(forward);
  cudaFree(s.reserve);
  s.reserve = forward_setup.reserve;
  forward_setup.reserve = NULL;

  Oracle* o = backward_oracle(c);
  copy_tensor(o, "x", forward, "x");
  copy_tensor(o, "scale", forward, "scale");
  if (c->has_saved) copy_tensor(o, "saved_mean", forward, "saved_mean");
  if (c->has_saved) copy_tensor(o, "saved_inv", forward, "saved_inv");
  start_from(o, "dx", "dx_before");
  start_from(o, "dscale", "dscale_before");
  start_from(o, "dbias", "dbias_before");
  const int is_relu = c->activation == CUDNN_ACTIVATION_RELU;
  if (c->ops != BN && is_relu) copy_tensor(o, "y", forward, "y");
  call_backward(c, &s, o, c->ops == BN_ADD_ACTIVATION ? oracle_device(o, "dz") : NULL);
  if (c->ops != BN && !is_relu) { /* here dz is an input of the graph */
    oracle_download(o, "dz");
    check_tanh_gradient(forward, o);
  }
  oracle_check(o);
  oracle_destroy(o);
  oracle_destroy(forward);
  tear_down(&forward_setup);
  tear_down(&s);
}

/* --- misuse --- */

static void test_derive(void) {
  const Tensor x = {"f16", 1, 5, {2, 3, 4, 5, 6}};
  cudnnTensorDescriptor_t from = descriptor_of(&x), to = NULL, other = NULL;
  cudnnDataType_t type;
  int rank = 0, dims[5], strides[5];
  SUCCEEDS(cudnnCreateTensorDescriptor(&to));
  SUCCEEDS(cudnnCreateTensorDescriptor(&other));
  SUCCEEDS(cudnnDeriveBNTensorDescriptor(to, from, CUDNN_BATCHNORM_SPATIAL_PERSISTENT));
  SUCCEEDS(cudnnGetTensorNdDescriptor(to, 5, &type, &rank, dims, strides));
  CHECK(type == CUDNN_DATA_FLOAT && rank == 5 && dims[0] == 1 && dims[1] == 3 && dims[4] == 1);
  SUCCEEDS(cudnnDeriveNormTensorDescriptor(to, other, from, CUDNN_NORM_PER_ACTIVATION, 1));
  SUCCEEDS(cudnnGetTensorNdDescriptor(other, 5, &type, &rank, dims, strides));
  CHECK(type == CUDNN_DATA_FLOAT && dims[0] == 1 && dims[2] == 4 && dims[4] == 6);
  CHECK(strides[1] == 120 && strides[4] == 1);
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnDeriveBNTensorDescriptor(NULL, from, CUDNN_BATCHNORM_SPATIAL));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnDeriveBNTensorDescriptor(to, from, (cudnnBatchNormMode_t)7));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnDeriveNormTensorDescriptor(to, other, from, CUDNN_NORM_PER_CHANNEL, 0));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnDeriveNormTensorDescriptor(to, other, from, CUDNN_NORM_PER_CHANNEL, 2));
  SUCCEEDS(cudnnDestroyTensorDescriptor(from));
  SUCCEEDS(cudnnDestroyTensorDescriptor(to));
  SUCCEEDS(cudnnDestroyTensorDescriptor(other));
}

static void test_misuse(void) {
  const Case c = {{"f32", 0, 4, {2, 3, 2, 2}},
                  SPATIAL,
                  BN_ADD_ACTIVATION,
                  CUDNN_ACTIVATION_RELU,
                  1,
                  0,
                  1,
                  0,
                  0,
                  0,
                  0.1,
                  0,
                  0};
  Setup s = set_up(&c, 0);
  const float one = 1.0F, zero = 0.0F;
  float* m = device_memory(4096);
  const cudnnBatchNormMode_t mode = CUDNN_BATCHNORM_SPATIAL;
  const cudnnBatchNormOps_t ops = CUDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION;
#define INFERENCE(x_desc, x_data, params_desc, smallest)                                          \
  cudnnBatchNormalizationForwardInference(handle, mode, &one, &zero, x_desc, x_data, s.x, m + 64, \
                                          params_desc, m + 128, m + 160, m + 192, m + 224,        \
                                          smallest)
  SUCCEEDS(INFERENCE(s.x, m, s.params, 0.0));
  RETURNS(CUDNN_STATUS_BAD_PARAM, INFERENCE(s.x, NULL, s.params, 0.0));
  RETURNS(CUDNN_STATUS_BAD_PARAM, INFERENCE(NULL, m, s.params, 0.0));
  RETURNS(CUDNN_STATUS_BAD_PARAM, INFERENCE(s.x, m, s.x, 0.0));
  RETURNS(CUDNN_STATUS_BAD_PARAM, INFERENCE(s.params, m, s.params, 0.0));
  RETURNS(CUDNN_STATUS_BAD_PARAM, INFERENCE(s.x, m, s.params, -1.0));
#define TRAINING(z, running_mean, running_variance, activation, reserve_bytes)                    \
  cudnnBatchNormalizationForwardTrainingEx(                                                       \
      handle, mode, ops, &one, &zero, s.x, m, z, m + 32, s.x, m + 64, s.params, m + 128, m + 160, \
      0.1, running_mean, running_variance, 1e-5, NULL, NULL, activation, s.workspace,             \
      s.workspace_bytes, s.reserve, reserve_bytes)
  SUCCEEDS(TRAINING(s.x, m + 256, m + 288, s.activation, s.reserve_bytes));
  RETURNS(CUDNN_STATUS_BAD_PARAM, TRAINING(s.x, m + 256, NULL, s.activation, s.reserve_bytes));
  RETURNS(CUDNN_STATUS_BAD_PARAM, TRAINING(NULL, m + 256, m + 288, s.activation, s.reserve_bytes));
  RETURNS(CUDNN_STATUS_BAD_PARAM, TRAINING(s.x, m + 256, m + 288, NULL, s.reserve_bytes));
  RETURNS(CUDNN_STATUS_BAD_PARAM, TRAINING(s.params, NULL, NULL, s.activation, s.reserve_bytes));
  RETURNS(CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT,
          TRAINING(s.x, NULL, NULL, s.activation, s.reserve_bytes - 1));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnBatchNormalizationBackward(
                                      handle, mode, &one, &zero, &one, &zero, s.x, m, s.x, m, s.x,
                                      m + 64, s.params, m + 128, NULL, m + 160, 1e-5, NULL, NULL));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnBatchNormalizationBackward(handle, mode, &one, &zero, &one, &zero, s.x, m, s.x, m,
                                          s.x, m + 64, s.params, m + 128, m + 192, m + 160, 1e-5,
                                          m + 224, NULL));
  size_t bytes = 0;
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnGetBatchNormalizationTrainingExReserveSpaceSize(
                                      handle, mode, (cudnnBatchNormOps_t)3, NULL, s.x, &bytes));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnGetBatchNormalizationTrainingExReserveSpaceSize(
                                      handle, mode, CUDNN_BATCHNORM_OPS_BN, NULL, s.x, NULL));
  cudaFree(m);
  tear_down(&s);
}

int main(void) {
  SUCCEEDS(cudnnCreate(&handle));
  const cudnnActivationMode_t relu = CUDNN_ACTIVATION_RELU, tanh = CUDNN_ACTIVATION_TANH;
  const cudnnActivationMode_t same = CUDNN_ACTIVATION_IDENTITY;
  const int persistent = CUDNN_BATCHNORM_SPATIAL_PERSISTENT;
  const Case cases[] = {
      /* x, mode, ops, activation, alpha, beta, of parameters, running, saved, factor, newer, plain
       */
      {{"f32", 0, 4, {4, 3, 5, 7}}, SPATIAL, BN, same, 1, 0, 1, 0, 1, 1, 0.1, 0, 1},
      {{"f32", 0, 4, {4, 3, 5, 7}}, SPATIAL, BN, same, 2.5, -0.5, 0.5, 2, 1, 0, 0.3, 0, 1},
      {{"f32", 1, 4, {3, 17, 3, 5}}, persistent, BN, same, 1, 0, 1, 0, 1, 1, 0.1, 0, 0},
      {{"f16", 1, 4, {2, 8, 3, 5}}, persistent, BN, same, 1, 0, 1, 0, 1, 1, 0.1, 0, 0},
      {{"bf16", 0, 4, {2, 5, 3, 5}}, SPATIAL, BN, same, 1, 0, 1, 1, 0, 1, 0.1, 0, 0},
      {{"f64", 0, 5, {3, 2, 2, 3, 2}}, SPATIAL, BN, same, 1.5, 0.25, 1, 0, 1, 1, 0.1, 0, 1},
      {{"f32", 1, 5, {2, 6, 2, 3, 4}}, SPATIAL, BN_ACTIVATION, relu, 1, 0, 1, 0, 1, 1, 0.1, 0, 0},
      {{"f32", 0, 4, {5, 3, 2, 3}}, PER_ACTIVATION, BN, same, 1, 0, 1, 0, 1, 1, 0.2, 0, 1},
      {{"f32", 1, 4, {5, 3, 2, 3}}, PER_ACTIVATION, BN, same, 2, 1, 1, 1, 1, 1, 0.2, 1, 0},
      {{"f16", 0, 5, {4, 3, 2, 2, 2}},
       PER_ACTIVATION,
       BN_ADD_ACTIVATION,
       relu,
       1,
       0,
       1,
       0,
       1,
       1,
       0.2,
       0,
       0},
      {{"f32", 0, 4, {3, 4, 5, 2}}, SPATIAL, BN_ADD_ACTIVATION, relu, 1, 0, 1, 0, 1, 1, 0.1, 0, 0},
      {{"f16", 1, 4, {2, 8, 4, 4}},
       persistent,
       BN_ADD_ACTIVATION,
       relu,
       1,
       0,
       1,
       0,
       0,
       1,
       0.1,
       0,
       0},
      {{"f32", 1, 4, {2, 8, 3, 3}},
       SPATIAL,
       BN_ADD_ACTIVATION,
       relu,
       2,
       0.5,
       3,
       0.5,
       1,
       0,
       0.1,
       1,
       0},
      {{"f16", 1, 4, {2, 8, 3, 3}}, SPATIAL, BN_ACTIVATION, relu, 1, 0, 1, 0, 1, 1, 0.1, 1, 0},
      {{"f32", 0, 4, {2, 5, 3, 3}}, SPATIAL, BN_ADD_ACTIVATION, tanh, 1, 0, 1, 0, 1, 1, 0.1, 0, 0},
      {{"f32", 0, 4, {2, 5, 3, 3}}, SPATIAL, BN, same, 1, 0, 1, 0, 0, 0, 0.1, 1, 0},
      {{"f32", 0, 4, {6, 5, 1, 1}}, SPATIAL, BN, same, 1, 0, 1, 0, 1, 1, 0.1, 0, 0},
      {{"f32", 0, 4, {6, 5, 1, 1}}, PER_ACTIVATION, BN, same, 1, 0, 1, 0, 1, 1, 0.1, 0, 0},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
    const int before = failures;
    test_training(&cases[i]);
    test_backward(&cases[i]);
    if (cases[i].newer || cases[i].ops == BN) test_inference(&cases[i]);
    if (failures > before) fprintf(stderr, "in case %d\n", (int)i);
  }
  test_first_average();
  test_derive();
  test_misuse();
  SUCCEEDS(cudnnDestroy(handle));
  return failures;
}
