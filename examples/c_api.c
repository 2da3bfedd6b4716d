/* A small layer in C: y = relu(a b + bias), built, compiled, run and checked. */
#include <ashlar/ashlar.h>
#include <stdio.h>
#include <stdlib.h>

/* Exits with the library's error message if a call fails. */
static void check(ashlar_status status, const char* call) {
  if (status == ASHLAR_OK) return;
  fprintf(stderr, "%s: %s: %s\n", call, ashlar_status_name(status), ashlar_last_error());
  exit(1);
}
#define CHECK(call) check(call, #call)

static int32_t add_tensor(ashlar_graph* graph, const char* name, ashlar_tensor_kind kind,
                          ashlar_dtype dtype, int64_t rows, int64_t columns) {
  ashlar_tensor tensor;
  int32_t id = ASHLAR_NO_TENSOR;
  ashlar_tensor_init(&tensor);
  tensor.name = name;
  tensor.kind = kind;
  tensor.dtype = dtype;
  tensor.rank = rows > 0 ? 2 : 0; /* 0: inferred */
  tensor.dims[0] = rows;
  tensor.dims[1] = columns;
  CHECK(ashlar_graph_add_tensor(graph, &tensor, &id));
  return id;
}

static void add_pointwise(ashlar_graph* graph, const char* mode, int32_t x, int32_t b, int32_t y) {
  ashlar_node* node = NULL;
  CHECK(ashlar_node_create("pointwise", mode, &node));
  CHECK(ashlar_node_set_string(node, "mode", mode));
  CHECK(ashlar_node_set_input(node, "x", x));
  if (b != ASHLAR_NO_TENSOR) CHECK(ashlar_node_set_input(node, "b", b));
  CHECK(ashlar_node_set_output(node, "y", y));
  CHECK(ashlar_graph_add_node(graph, node, NULL));
  ashlar_node_destroy(node);
}

static ashlar_graph* build_graph(void) {
  ashlar_graph* graph = NULL;
  ashlar_node* matmul = NULL;
  int32_t a, b, bias, product, sum, y;
  CHECK(ashlar_graph_create("layer", &graph));
  a = add_tensor(graph, "a", ASHLAR_INPUT, ASHLAR_F16, 32, 64);
  b = add_tensor(graph, "b", ASHLAR_INPUT, ASHLAR_F16, 64, 48);
  bias = add_tensor(graph, "bias", ASHLAR_INPUT, ASHLAR_F32, 1, 48);
  product = add_tensor(graph, "product", ASHLAR_INTERMEDIATE, ASHLAR_F32, 0, 0);
  sum = add_tensor(graph, "sum", ASHLAR_INTERMEDIATE, ASHLAR_F32, 0, 0);
  y = add_tensor(graph, "y", ASHLAR_OUTPUT, ASHLAR_F16, 0, 0);
  CHECK(ashlar_node_create("matmul", "matmul", &matmul));
  CHECK(ashlar_node_set_input(matmul, "a", a));
  CHECK(ashlar_node_set_input(matmul, "b", b));
  CHECK(ashlar_node_set_output(matmul, "c", product));
  CHECK(ashlar_graph_add_node(graph, matmul, NULL));
  ashlar_node_destroy(matmul);
  add_pointwise(graph, "add", product, bias, sum);
  add_pointwise(graph, "relu_fwd", sum, ASHLAR_NO_TENSOR, y);
  CHECK(ashlar_graph_validate(graph));
  return graph;
}

int main(void) {
  enum { MAX_BOUND = 8, ALIGNMENT = 64 };
  ashlar_graph* graph = build_graph();
  ashlar_plan* plan = NULL;
  ashlar_comparison worst;
  char sentence[512];
  void* pointers[MAX_BOUND] = {NULL};
  void* workspace = NULL;
  char* text = NULL;
  size_t needed = 0;
  int64_t workspace_size = 0;
  int32_t count = 0;
  int32_t i;

  CHECK(ashlar_compile(graph, NULL, &plan));
  CHECK(ashlar_plan_explain(plan, NULL, 0, &needed));
  text = malloc(needed);
  if (!text) return 1;
  CHECK(ashlar_plan_explain(plan, text, needed, NULL));
  printf("ashlar %s\n%s\n", ashlar_version(), text);

  CHECK(ashlar_plan_bound_count(plan, &count));
  if (count > MAX_BOUND) return 1;
  for (i = 0; i < count; ++i) {
    ashlar_tensor tensor;
    int64_t bytes = 0;
    int32_t id = ASHLAR_NO_TENSOR;
    ashlar_tensor_init(&tensor);
    CHECK(ashlar_plan_bound_tensor(plan, i, &tensor));
    CHECK(ashlar_plan_bound_bytes(plan, i, &bytes));
    CHECK(ashlar_graph_find_tensor(graph, tensor.name, &id));
    pointers[i] = malloc((size_t)bytes);
    if (!pointers[i]) return 1;
    CHECK(ashlar_fill_random(graph, id, pointers[i], (uint64_t)i, -1.0, 1.0));
  }
  CHECK(ashlar_plan_workspace_size(plan, &workspace_size));
  if (workspace_size > 0) {
    workspace = malloc((size_t)workspace_size + ALIGNMENT);
    if (!workspace) return 1;
  }
  CHECK(ashlar_plan_run(
      plan, pointers, count,
      workspace ? (char*)workspace + (ALIGNMENT - (uintptr_t)workspace % ALIGNMENT) : NULL, NULL));

  ashlar_comparison_init(&worst);
  CHECK(ashlar_check(graph, (const void* const*)pointers, count, &worst, sentence, sizeof sentence,
                     NULL));
  printf("check: %s, %s\n", worst.ok ? "ok" : "FAILED", sentence);

  for (i = 0; i < count; ++i) free(pointers[i]);
  free(workspace);
  free(text);
  ashlar_plan_destroy(plan);
  ashlar_graph_destroy(graph);
  return worst.ok ? 0 : 1;
}
