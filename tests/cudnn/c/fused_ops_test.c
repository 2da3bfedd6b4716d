/* Fused-ops plans: all seven fused ops. */
#include "fused_ops.h"

#include <string.h>

static cudnnHandle_t handle;

#define HEAD "{\"format\":\"ashlar-graph\",\"version\":1,\"tensors\":["
#define POINTWISE(inputs, output, mode)                                        \
  "{\"op\":\"pointwise\",\"inputs\":{" inputs "},\"outputs\":{\"y\":\"" output \
  "\"},"                                                                       \
  "\"attributes\":{\"mode\":\"" mode "\"}}"
#define MUL(a, b, y) POINTWISE("\"x\":\"" a "\",\"b\":\"" b "\"", y, "mul")
#define ADD(a, b, y) POINTWISE("\"x\":\"" a "\",\"b\":\"" b "\"", y, "add")
#define RELU(x, y) POINTWISE("\"x\":\"" x "\"", y, "relu_fwd")
#define F32(name) "{\"name\":\"" name "\",\"dtype\":\"f32\"}"
#define F32_OUT(name) "{\"name\":\"" name "\",\"kind\":\"output\",\"dtype\":\"f32\"}"

static void run(Fusion* fusion, int with_workspace) {
  size_t bytes = 0;
  SUCCEEDS(cudnnMakeFusedOpsPlan(handle, fusion->plan, fusion->constants, &bytes));
  if (!with_workspace) bytes = 0;
  void* workspace = workspace_of(bytes);
  set_variant(fusion, CUDNN_PTR_WORKSPACE, workspace);
  set_variant(fusion, CUDNN_SCALAR_SIZE_T_WORKSPACE_SIZE_IN_BYTES, &bytes);
  SUCCEEDS(cudnnFusedOpsExecute(handle, fusion->plan, fusion->variants));
  cudaFree(workspace);
}

static const char* json_channels(const char* name, const char* kind, const char* dtype,
                                 const Shape* shape, int count) {
  const int ones[MAX_AXES] = {1, 1, 1};
  return json_tensor(name, kind, dtype, shape, 1, count, ones);
}

static cudnnActivationDescriptor_t relu(void) {
  cudnnActivationDescriptor_t descriptor;
  SUCCEEDS(cudnnCreateActivationDescriptor(&descriptor));
  SUCCEEDS(
      cudnnSetActivationDescriptor(descriptor, CUDNN_ACTIVATION_RELU, CUDNN_PROPAGATE_NAN, 0.0));
  return descriptor;
}

/* The prologue of a convolution: activation(x * eq_scale + eq_bias), or x. */
typedef struct {
  const char *tensors, *nodes, *result;
} Prologue;
static Prologue prologue_of(const Shape* shape, int with_scale) {
  static char tensors[2048];
  Prologue descriptor = {"", "", "x"};
  if (!with_scale) return descriptor;
  snprintf(tensors, sizeof tensors, "%s,%s,%s," F32("scaled") "," F32("biased") ",",
           json_channels("eq_scale", "input", shape->dtype, shape, shape->c),
           json_channels("eq_bias", "input", shape->dtype, shape, shape->c),
           json_x(shape, "in", "intermediate"));
  descriptor.tensors = tensors;
  descriptor.nodes = MUL("x", "eq_scale", "scaled") "," ADD("scaled", "eq_bias", "biased") "," RELU(
      "biased", "in") ",";
  descriptor.result = "in";
  return descriptor;
}

static void add_prologue(Fusion* fusion, const Oracle* oracle, int with_scale,
                         cudnnTensorDescriptor_t x, cudnnTensorDescriptor_t equivalent,
                         cudnnActivationDescriptor_t activation) {
  describe(fusion, CUDNN_PARAM_XDESC, x);
  point(fusion, CUDNN_PARAM_XDATA_PLACEHOLDER, CUDNN_PTR_XDATA, oracle_device(oracle, "x"));
  if (!with_scale) return;
  describe(fusion, CUDNN_PARAM_BN_EQSCALEBIAS_DESC, equivalent);
  describe(fusion, CUDNN_PARAM_ACTIVATION_DESC, activation);
  point(fusion, CUDNN_PARAM_BN_EQSCALE_PLACEHOLDER, CUDNN_PTR_BN_EQSCALE,
        oracle_device(oracle, "eq_scale"));
  point(fusion, CUDNN_PARAM_BN_EQBIAS_PLACEHOLDER, CUDNN_PTR_BN_EQBIAS,
        oracle_device(oracle, "eq_bias"));
}

/* A convolution with per-channel sums, then backward filter. */
static void test_convolutions(const Shape* shape, int with_scale, int with_workspace) {
  Descriptors d = make_descriptors(shape);
  cudnnTensorDescriptor_t equivalent = channels(type_of(shape->dtype), shape->c);
  cudnnTensorDescriptor_t stats = channels(CUDNN_DATA_FLOAT, shape->k);
  cudnnActivationDescriptor_t activation = relu();
  const Prologue prologue = prologue_of(shape, with_scale);
  Oracle* oracle = oracle_graph(
      HEAD "%s,%s,%s,%s" F32_OUT("y_sum") "," F32_OUT("y_sq_sum") "],\"nodes\":["
      "%s{\"op\":\"conv_forward\",\"inputs\":{\"x\":\"%s\",\"w\":\"w\"},\"outputs\":{\"y\":\"y\"},"
      "\"attributes\":%s},{\"op\":\"gen_stats\",\"inputs\":{\"x\":\"y\"},"
      "\"outputs\":{\"sum\":\"y_sum\",\"sq_sum\":\"y_sq_sum\"}}]}",
      json_x(shape, "x", "input"), json_w(shape, "w", "input"), json_y(shape, "y", "output"),
      prologue.tensors, prologue.nodes, prologue.result, json_attributes(shape));
  Fusion fusion = make_fusion(CUDNN_FUSED_SCALE_BIAS_ACTIVATION_CONV_BNSTATS);
  add_prologue(&fusion, oracle, with_scale, d.x, equivalent, activation);
  describe(&fusion, CUDNN_PARAM_CONV_DESC, d.conv);
  describe(&fusion, CUDNN_PARAM_WDESC, d.w);
  describe(&fusion, CUDNN_PARAM_YDESC, d.y);
  describe(&fusion, CUDNN_PARAM_YSTATS_DESC, stats);
  point(&fusion, CUDNN_PARAM_WDATA_PLACEHOLDER, CUDNN_PTR_WDATA, oracle_device(oracle, "w"));
  point(&fusion, CUDNN_PARAM_YDATA_PLACEHOLDER, CUDNN_PTR_YDATA, oracle_device(oracle, "y"));
  point(&fusion, CUDNN_PARAM_YSUM_PLACEHOLDER, CUDNN_PTR_YSUM, oracle_device(oracle, "y_sum"));
  point(&fusion, CUDNN_PARAM_YSQSUM_PLACEHOLDER, CUDNN_PTR_YSQSUM,
        oracle_device(oracle, "y_sq_sum"));
  run(&fusion, with_workspace);
  oracle_check(oracle);
  oracle_destroy(oracle);
  destroy_fusion(&fusion);

  oracle = oracle_graph(
      HEAD
      "%s,%s,%s%s],\"nodes\":[%s{\"op\":\"conv_backward_filter\","
      "\"inputs\":{\"x\":\"%s\",\"dy\":\"dy\"},\"outputs\":{\"dw\":\"dw\"},\"attributes\":%s}]}",
      json_x(shape, "x", "input"), json_y(shape, "dy", "input"), prologue.tensors,
      json_w(shape, "dw", "output"), prologue.nodes, prologue.result, json_attributes(shape));
  fusion = make_fusion(CUDNN_FUSED_SCALE_BIAS_ACTIVATION_WGRAD);
  add_prologue(&fusion, oracle, with_scale, d.x, equivalent, activation);
  describe(&fusion, CUDNN_PARAM_CONV_DESC, d.conv);
  describe(&fusion, CUDNN_PARAM_DWDESC, d.w);
  describe(&fusion, CUDNN_PARAM_DYDESC, d.y);
  point(&fusion, CUDNN_PARAM_DYDATA_PLACEHOLDER, CUDNN_PTR_DYDATA, oracle_device(oracle, "dy"));
  point(&fusion, CUDNN_PARAM_DWDATA_PLACEHOLDER, CUDNN_PTR_DWDATA, oracle_device(oracle, "dw"));
  run(&fusion, with_workspace);
  oracle_check(oracle);
  oracle_destroy(oracle);
  destroy_fusion(&fusion);

  SUCCEEDS(cudnnDestroyActivationDescriptor(activation));
  SUCCEEDS(cudnnDestroyTensorDescriptor(equivalent));
  SUCCEEDS(cudnnDestroyTensorDescriptor(stats));
  destroy_descriptors(&d);
}

static void test_conv_activation(const Shape* shape) {
  Descriptors d = make_descriptors(shape);
  cudnnTensorDescriptor_t equivalent = channels(type_of(shape->dtype), shape->k);
  cudnnActivationDescriptor_t activation = relu();
  Oracle* oracle = oracle_graph(
      HEAD "%s,%s,%s,%s,%s,%s," F32("c") "," F32("scaled") "," F32("biased") "," F32("added")
      "],\"nodes\":[{\"op\":\"conv_forward\",\"inputs\":{\"x\":\"x\",\"w\":\"w\"},"
      "\"outputs\":{\"y\":\"c\"},\"attributes\":%s}," MUL("c", "eq_scale", "scaled") "," ADD(
          "scaled", "eq_bias", "biased") "," ADD("biased", "z", "added") "," RELU("added",
                                                                                   "y") "]}",
      json_x(shape, "x", "input"), json_w(shape, "w", "input"), json_y(shape, "y", "output"),
      json_y(shape, "z", "input"),
      json_channels("eq_scale", "input", shape->dtype, shape, shape->k),
      json_channels("eq_bias", "input", shape->dtype, shape, shape->k), json_attributes(shape));
  Fusion fusion = make_fusion(CUDNN_FUSED_CONV_SCALE_BIAS_ADD_ACTIVATION);
  add_prologue(&fusion, oracle, 1, d.x, equivalent, activation);
  describe(&fusion, CUDNN_PARAM_CONV_DESC, d.conv);
  describe(&fusion, CUDNN_PARAM_WDESC, d.w);
  describe(&fusion, CUDNN_PARAM_YDESC, d.y);
  describe(&fusion, CUDNN_PARAM_ZDESC, d.y);
  point(&fusion, CUDNN_PARAM_WDATA_PLACEHOLDER, CUDNN_PTR_WDATA, oracle_device(oracle, "w"));
  point(&fusion, CUDNN_PARAM_YDATA_PLACEHOLDER, CUDNN_PTR_YDATA, oracle_device(oracle, "y"));
  point(&fusion, CUDNN_PARAM_ZDATA_PLACEHOLDER, CUDNN_PTR_ZDATA, oracle_device(oracle, "z"));
  run(&fusion, 1);
  oracle_check(oracle);
  oracle_destroy(oracle);
  destroy_fusion(&fusion);
  SUCCEEDS(cudnnDestroyActivationDescriptor(activation));
  SUCCEEDS(cudnnDestroyTensorDescriptor(equivalent));
  destroy_descriptors(&d);
}

/* BN_FINALIZE: sums to scale and bias; running statistics are updated in place. */
static void test_finalize(int is_training) {
  const int count = 12;
  Shape shape = kHalf;
  cudnnTensorDescriptor_t stats = channels(CUDNN_DATA_FLOAT, count);
  cudnnTensorDescriptor_t equivalent = channels(CUDNN_DATA_HALF, count);
  const char* scale = json_channels("scale", "input", "f32", &shape, count);
  const char* bias = json_channels("bias", "input", "f32", &shape, count);
  const char* mean = json_channels("mean", "input", "f32", &shape, count);
  const char* var = json_channels("var", "input", "f32", &shape, count);
  const char* eq_scale = json_channels("eq_scale", "output", "f16", &shape, count);
  const char* eq_bias = json_channels("eq_bias", "output", "f16", &shape, count);
  Oracle* oracle =
      is_training
          ? oracle_graph(
                HEAD "%s,%s,%s,%s,%s,%s,%s,%s," F32_OUT("saved_mean") "," F32_OUT("saved_inv") ","
                F32_OUT("next_mean") "," F32_OUT("next_var")
                "],\"nodes\":[{\"op\":\"bn_finalize\",\"inputs\":{\"sum\":\"sum\","
                "\"sq_sum\":\"sq_sum\",\"scale\":\"scale\",\"bias\":\"bias\","
                "\"running_mean\":\"mean\",\"running_var\":\"var\"},\"outputs\":{"
                "\"eq_scale\":\"eq_scale\",\"eq_bias\":\"eq_bias\",\"saved_mean\":\"saved_mean\","
                "\"saved_inv_variance\":\"saved_inv\",\"next_running_mean\":\"next_mean\","
                "\"next_running_var\":\"next_var\"},\"attributes\":{\"epsilon\":0.001,"
                "\"momentum\":0.25,\"count\":10}}]}",
                scale, bias, mean, var, eq_scale, eq_bias,
                json_channels("sum", "input", "f32", &shape, count),
                json_channels("sq_sum", "input", "f32", &shape, count))
          : oracle_graph(HEAD
                         "%s,%s,%s,%s,%s,%s],\"nodes\":[{\"op\":\"bn_finalize\",\"inputs\":{"
                         "\"scale\":\"scale\",\"bias\":\"bias\",\"running_mean\":\"mean\","
                         "\"running_var\":\"var\"},\"outputs\":{\"eq_scale\":\"eq_scale\","
                         "\"eq_bias\":\"eq_bias\"},\"attributes\":{\"phase\":\"inference\","
                         "\"epsilon\":0.001}}]}",
                         scale, bias, mean, var, eq_scale, eq_bias);
  oracle_fill(oracle, "var", 0.5, 2.0);
  Fusion fusion = make_fusion(is_training ? CUDNN_FUSED_BN_FINALIZE_STATISTICS_TRAINING
                                          : CUDNN_FUSED_BN_FINALIZE_STATISTICS_INFERENCE);
  describe(&fusion, CUDNN_PARAM_BN_SCALEBIAS_MEANVAR_DESC, stats);
  describe(&fusion, CUDNN_PARAM_BN_EQSCALEBIAS_DESC, equivalent);
  point(&fusion, CUDNN_PARAM_BN_SCALE_PLACEHOLDER, CUDNN_PTR_BN_SCALE,
        oracle_device(oracle, "scale"));
  point(&fusion, CUDNN_PARAM_BN_BIAS_PLACEHOLDER, CUDNN_PTR_BN_BIAS, oracle_device(oracle, "bias"));
  point(&fusion, CUDNN_PARAM_BN_EQSCALE_PLACEHOLDER, CUDNN_PTR_BN_EQSCALE,
        oracle_device(oracle, "eq_scale"));
  point(&fusion, CUDNN_PARAM_BN_EQBIAS_PLACEHOLDER, CUDNN_PTR_BN_EQBIAS,
        oracle_device(oracle, "eq_bias"));
  void *running_mean = oracle_device(oracle, "mean"), *running_var = oracle_device(oracle, "var");
  double epsilon = 0.001, factor = 0.25;
  int64_t accumulated = 10;
  if (is_training) {
    oracle_fill(oracle, "sum", -5.0, 5.0);
    oracle_fill(oracle, "sq_sum", 10.0, 40.0);
    void *next_mean = oracle_device(oracle, "next_mean"),
         *next_var = oracle_device(oracle, "next_var");
    cudaMemcpy(next_mean, running_mean, oracle_bytes(oracle, "mean"), cudaMemcpyDeviceToDevice);
    cudaMemcpy(next_var, running_var, oracle_bytes(oracle, "var"), cudaMemcpyDeviceToDevice);
    running_mean = next_mean;
    running_var = next_var;
    describe(&fusion, CUDNN_PARAM_YSTATS_DESC, stats);
    point(&fusion, CUDNN_PARAM_YSUM_PLACEHOLDER, CUDNN_PTR_YSUM, oracle_device(oracle, "sum"));
    point(&fusion, CUDNN_PARAM_YSQSUM_PLACEHOLDER, CUDNN_PTR_YSQSUM,
          oracle_device(oracle, "sq_sum"));
    point(&fusion, CUDNN_PARAM_BN_SAVED_MEAN_PLACEHOLDER, CUDNN_PTR_BN_SAVED_MEAN,
          oracle_device(oracle, "saved_mean"));
    point(&fusion, CUDNN_PARAM_BN_SAVED_INVSTD_PLACEHOLDER, CUDNN_PTR_BN_SAVED_INVSTD,
          oracle_device(oracle, "saved_inv"));
    set_variant(&fusion, CUDNN_SCALAR_INT64_T_BN_ACCUMULATION_COUNT, &accumulated);
    set_variant(&fusion, CUDNN_SCALAR_DOUBLE_BN_EXP_AVG_FACTOR, &factor);
  }
  point(&fusion, CUDNN_PARAM_BN_RUNNING_MEAN_PLACEHOLDER, CUDNN_PTR_BN_RUNNING_MEAN, running_mean);
  point(&fusion, CUDNN_PARAM_BN_RUNNING_VAR_PLACEHOLDER, CUDNN_PTR_BN_RUNNING_VAR, running_var);
  set_variant(&fusion, CUDNN_SCALAR_DOUBLE_BN_EPSILON, &epsilon);
  size_t bytes = 1;
  SUCCEEDS(cudnnMakeFusedOpsPlan(handle, fusion.plan, fusion.constants, &bytes));
  CHECK(bytes == 0);
  SUCCEEDS(cudnnFusedOpsExecute(handle, fusion.plan, fusion.variants));
  oracle_check(oracle);
  oracle_destroy(oracle);
  destroy_fusion(&fusion);
  SUCCEEDS(cudnnDestroyTensorDescriptor(stats));
  SUCCEEDS(cudnnDestroyTensorDescriptor(equivalent));
}

/* ReLU with its bit mask, and the backward through the mask and a batch norm. */
static void test_bitmask(const Shape* shape) {
  Descriptors d = make_descriptors(shape);
  cudnnTensorDescriptor_t equivalent = channels(CUDNN_DATA_HALF, shape->c), bits;
  cudnnTensorDescriptor_t stats = channels(CUDNN_DATA_FLOAT, shape->c);
  cudnnActivationDescriptor_t activation = relu();
  const int positions = shape->n * shape->in[0] * shape->in[1];
  SUCCEEDS(cudnnCreateTensorDescriptor(&bits));
  /* Two 32-bit words per pixel: channels are padded to 64, pixels to 32. */
  const int rows = (positions + 31) / 32 * 32;
  SUCCEEDS(cudnnSetTensorNdDescriptor(bits, CUDNN_DATA_INT32, 3, (const int[]){rows, 2, 1},
                                      (const int[]){2, 1, 1}));
  void* bit_memory = device_memory((size_t)rows * 8);
  Oracle* oracle = oracle_graph(
      HEAD "%s,%s,%s,%s,%s," F32("scaled") "," F32("biased") "," F32("added") "],\"nodes\":[" MUL(
          "x", "eq_scale", "scaled") "," ADD("scaled", "eq_bias",
                                             "biased") "," ADD("biased", "z",
                                                               "added") "," RELU("added", "y") "]}",
      json_x(shape, "x", "input"), json_x(shape, "z", "input"), json_x(shape, "y", "output"),
      json_channels("eq_scale", "input", "f16", shape, shape->c),
      json_channels("eq_bias", "input", "f16", shape, shape->c));
  Fusion fusion = make_fusion(CUDNN_FUSED_SCALE_BIAS_ADD_ACTIVATION_GEN_BITMASK);
  add_prologue(&fusion, oracle, 1, d.x, equivalent, activation);
  describe(&fusion, CUDNN_PARAM_YDESC, d.x);
  describe(&fusion, CUDNN_PARAM_ZDESC, d.x);
  describe(&fusion, CUDNN_PARAM_ACTIVATION_BITMASK_DESC, bits);
  point(&fusion, CUDNN_PARAM_ZDATA_PLACEHOLDER, CUDNN_PTR_ZDATA, oracle_device(oracle, "z"));
  point(&fusion, CUDNN_PARAM_YDATA_PLACEHOLDER, CUDNN_PTR_YDATA, oracle_device(oracle, "y"));
  point(&fusion, CUDNN_PARAM_ACTIVATION_BITMASK_PLACEHOLDER, CUDNN_PTR_ACTIVATION_BITMASK,
        bit_memory);
  run(&fusion, 1);
  oracle_check(oracle);
  destroy_fusion(&fusion);

  Oracle* back = oracle_graph(
      HEAD "%s,%s,%s,%s,%s,%s,%s,%s," F32_OUT("dscale") "," F32_OUT("dbias")
      ",{\"name\":\"zero\",\"kind\":\"constant\",\"dtype\":\"f32\",\"dims\":[1,1,1,1],\"value\":0},"
      "{\"name\":\"m\",\"dtype\":\"bool\"}," F32("d") "],\"nodes\":["
      "{\"op\":\"pointwise\",\"inputs\":{\"x\":\"y\",\"b\":\"zero\"},\"outputs\":{\"y\":\"m\"},"
      "\"attributes\":{\"mode\":\"cmp_gt\"}},"
      "{\"op\":\"pointwise\",\"inputs\":{\"x\":\"dy\",\"b\":\"zero\",\"predicate\":\"m\"},"
      "\"outputs\":{\"y\":\"d\"},\"attributes\":{\"mode\":\"binary_select\"}},"
      POINTWISE("\"x\":\"d\"", "dz", "identity") ","
      "{\"op\":\"norm_backward\",\"inputs\":{\"x\":\"x\",\"dy\":\"d\",\"scale\":\"scale\","
      "\"mean\":\"mean\",\"inv_variance\":\"inv\"},\"outputs\":{\"dx\":\"dx\","
      "\"dscale\":\"dscale\",\"dbias\":\"dbias\"},\"attributes\":{\"mode\":\"batch\"}}]}",
      json_x(shape, "x", "input"), json_x(shape, "y", "input"), json_x(shape, "dy", "input"),
      json_x(shape, "dx", "output"), json_x(shape, "dz", "output"),
      json_channels("scale", "input", "f32", shape, shape->c),
      json_channels("mean", "input", "f32", shape, shape->c),
      json_channels("inv", "input", "f32", shape, shape->c));
  oracle_fill(back, "inv", 0.5, 1.5);
  memcpy(oracle_host(back, "y"), oracle_host(oracle, "y"), oracle_bytes(oracle, "y"));
  oracle_upload(back, "y");
  fusion = make_fusion(CUDNN_FUSED_DACTIVATION_FORK_DBATCHNORM);
  describe(&fusion, CUDNN_PARAM_XDESC, d.x);
  describe(&fusion, CUDNN_PARAM_DYDESC, d.x);
  describe(&fusion, CUDNN_PARAM_DXDESC, d.x);
  describe(&fusion, CUDNN_PARAM_DZDESC, d.x);
  describe(&fusion, CUDNN_PARAM_ACTIVATION_DESC, activation);
  describe(&fusion, CUDNN_PARAM_ACTIVATION_BITMASK_DESC, bits);
  describe(&fusion, CUDNN_PARAM_BN_SCALEBIAS_MEANVAR_DESC, stats);
  point(&fusion, CUDNN_PARAM_XDATA_PLACEHOLDER, CUDNN_PTR_XDATA, oracle_device(back, "x"));
  point(&fusion, CUDNN_PARAM_DYDATA_PLACEHOLDER, CUDNN_PTR_DYDATA, oracle_device(back, "dy"));
  point(&fusion, CUDNN_PARAM_DXDATA_PLACEHOLDER, CUDNN_PTR_DXDATA, oracle_device(back, "dx"));
  point(&fusion, CUDNN_PARAM_DZDATA_PLACEHOLDER, CUDNN_PTR_DZDATA, oracle_device(back, "dz"));
  point(&fusion, CUDNN_PARAM_ACTIVATION_BITMASK_PLACEHOLDER, CUDNN_PTR_ACTIVATION_BITMASK,
        bit_memory);
  point(&fusion, CUDNN_PARAM_BN_SCALE_PLACEHOLDER, CUDNN_PTR_BN_SCALE,
        oracle_device(back, "scale"));
  point(&fusion, CUDNN_PARAM_BN_SAVED_MEAN_PLACEHOLDER, CUDNN_PTR_BN_SAVED_MEAN,
        oracle_device(back, "mean"));
  point(&fusion, CUDNN_PARAM_BN_SAVED_INVSTD_PLACEHOLDER, CUDNN_PTR_BN_SAVED_INVSTD,
        oracle_device(back, "inv"));
  point(&fusion, CUDNN_PARAM_BN_DSCALE_PLACEHOLDER, CUDNN_PTR_BN_DSCALE,
        oracle_device(back, "dscale"));
  point(&fusion, CUDNN_PARAM_BN_DBIAS_PLACEHOLDER, CUDNN_PTR_BN_DBIAS,
        oracle_device(back, "dbias"));
  run(&fusion, 1);
  oracle_check(back);
  oracle_destroy(back);
  oracle_destroy(oracle);
  destroy_fusion(&fusion);
  cudaFree(bit_memory);
  SUCCEEDS(cudnnDestroyActivationDescriptor(activation));
  SUCCEEDS(cudnnDestroyTensorDescriptor(equivalent));
  SUCCEEDS(cudnnDestroyTensorDescriptor(stats));
  SUCCEEDS(cudnnDestroyTensorDescriptor(bits));
  destroy_descriptors(&d);
}

int main(void) {
  Shape single = kHalf;
  single.dtype = "f32";
  single.nhwc = 0;
  SUCCEEDS(cudnnCreate(&handle));
  test_convolutions(&kHalf, 1, 1);
  test_convolutions(&kHalf, 0, 0);
  test_convolutions(&single, 1, 1);
  test_conv_activation(&kHalf);
  test_finalize(1);
  test_finalize(0);
  test_bitmask(&kHalf);
  SUCCEEDS(cudnnDestroy(handle));
  return failures;
}
