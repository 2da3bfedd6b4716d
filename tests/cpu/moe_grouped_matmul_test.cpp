// Mixture-of-experts matmul, forward and backward.
#include "cpu/plan_check.hpp"

namespace ashlar::cpu {
namespace {

struct MixtureProblem {
  MoeMode mode;
  std::int64_t tokens, k, columns, experts, rows;
  std::int64_t top_k = 1;
  DType dtype = f32;
};

std::vector<double> evenly(std::int64_t count, std::int64_t rows, std::int64_t first) {
  std::vector<double> starts;
  for (std::int64_t e = 0; e < count; ++e)
    starts.push_back(static_cast<double>(first + e * (rows - first) / count));
  return starts;
}

// Row indices, some repeated, some out of range.
std::vector<double> scattered(std::int64_t count, std::int64_t limit) {
  std::vector<double> places;
  for (std::int64_t i = 0; i < count; ++i)
    places.push_back(static_cast<double>(i * 7 % (limit + 1) - (i % 50 == 49 ? limit + 1 : 0)));
  return places;
}

template <class Op>
void set_routing(PlanCheck& plan, const MixtureProblem& p, const Op&) {
  plan.set("first", evenly(p.experts, p.rows, 1));
  if (p.mode != MoeMode::none)
    plan.set("index", scattered(p.rows, p.mode == MoeMode::gather ? p.tokens : p.rows / p.top_k));
  if (p.mode == MoeMode::scatter) plan.set("ks", scattered(p.rows, p.top_k));
}

template <class Op>
std::vector<Operand<Op>> routing(Graph& g, const MixtureProblem& p) {
  std::vector<Operand<Op>> operands = {
      {Op::first_token_offset, g.input("first", {p.experts, 1, 1}, i32)}};
  if (p.mode != MoeMode::none)
    operands.push_back({Op::token_index, g.input("index", {1, p.rows, 1}, i32)});
  if (p.mode == MoeMode::scatter)
    operands.push_back({Op::token_ks, g.input("ks", {1, p.rows, 1}, i32)});
  return operands;
}

void check_forward(const MixtureProblem& p, CompileOptions options = {}) {
  using Op = MoeGroupedMatmul;
  Graph g;
  Op op;
  op.mode = p.mode;
  op.top_k = p.top_k;
  std::vector<Operand<Op>> operands = routing<Op>(g, p);
  operands.push_back({Op::token, g.input("token", {1, p.tokens, p.k}, p.dtype)});
  // Column-major experts, as cudnn-frontend requires.
  operands.push_back({Op::weight, g.input("weight", {p.experts, p.k, p.columns}, p.dtype,
                                          Layout(Dims{p.k * p.columns, 1, p.k}))});
  const Value output = g.apply(op, operands, {Op::output});
  g.output("y", gelu(output));
  PlanCheck plan(std::move(g));
  set_routing(plan, p, op);
  plan.expect_agrees("cpu.moe_grouped_matmul", options);
}

void check_backward(const MixtureProblem& p) {
  using Op = MoeGroupedMatmulBackward;
  Graph g;
  Op op;
  op.mode = p.mode;
  op.top_k = p.top_k;
  std::vector<Operand<Op>> operands = routing<Op>(g, p);
  operands.push_back({Op::doutput, g.input("doutput", {1, p.rows, p.columns}, p.dtype)});
  operands.push_back({Op::token, g.input("token", {1, p.tokens, p.k}, p.dtype)});
  operands.push_back({Op::weight, g.input("weight", {p.experts, p.k, p.columns}, p.dtype)});
  const auto results = g.apply(op, operands, {Op::dweight, Op::dtoken});
  g.output("dweight", results[Op::dweight]);
  g.output("dtoken", results[Op::dtoken]);
  PlanCheck plan(std::move(g));
  set_routing(plan, p, op);
  plan.expect_agrees("cpu.moe_grouped_matmul");
}

const MixtureProblem kProblems[] = {
    {.mode = MoeMode::none, .tokens = 300, .k = 70, .columns = 90, .experts = 3, .rows = 300},
    {.mode = MoeMode::none, .tokens = 200, .k = 33, .columns = 40, .experts = 24, .rows = 200},
    {.mode = MoeMode::gather, .tokens = 90, .k = 40, .columns = 35, .experts = 4, .rows = 260},
    {.mode = MoeMode::scatter,
     .tokens = 210,
     .k = 50,
     .columns = 64,
     .experts = 5,
     .rows = 210,
     .top_k = 2},
    {.mode = MoeMode::scatter,
     .tokens = 120,
     .k = 30,
     .columns = 30,
     .experts = 40,
     .rows = 120,
     .top_k = 3,
     .dtype = bf16}};

TEST(MoeGroupedMatmul, Forward) {
  for (const MixtureProblem& p : kProblems) check_forward(p);
}

TEST(MoeGroupedMatmul, Backward) {
  for (const MixtureProblem& p : kProblems) check_backward(p);
}

TEST(MoeGroupedMatmul, WithoutScratchForPanels) {
  CompileOptions options;
  options.workspace_limit = 1 << 16;
  check_forward(kProblems[0], options);
}

TEST(MoeGroupedMatmul, UntrustedRouting) {
  Graph g;
  using Op = MoeGroupedMatmul;
  Op op;
  op.mode = MoeMode::scatter;
  op.top_k = 2;
  const auto results = g.apply(op,
                               {{Op::token, g.input("token", {1, 8, 5}, f32)},
                                {Op::weight, g.input("weight", {2, 5, 3}, f32)},
                                {Op::first_token_offset, g.input("first", {2, 1, 1}, i64)},
                                {Op::token_index, g.input("index", {1, 8, 1}, i64)},
                                {Op::token_ks, g.input("ks", {1, 8, 1}, i64)}},
                               {Op::output});
  g.output("y", results[Op::output]);
  PlanCheck plan(std::move(g));
  plan.set("first", {9e18, -9e18});
  plan.set("index", {9e18, -9e18, 0, 1, 2, 3, 4, 4611686018427387904.0});
  plan.set("ks", {0, 0, 9e18, -1, 2, 1, 0, 0});
  plan.expect_agrees("cpu.moe_grouped_matmul");
  plan.set("first", {-9e18, 9e18});
  plan.expect_agrees("cpu.moe_grouped_matmul");
}

}  // namespace
}  // namespace ashlar::cpu
