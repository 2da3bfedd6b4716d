#include "support/multi_head_problem.hpp"

#include "cpu/plan_check.hpp"

namespace ashlar::cpu {
namespace {

// Attention rounds score gradients to the type of an fp8 d_o; multi-head attention, which is
// expanded to it, does not.
TEST(MultiHead, NarrowGradientsOfResults) {
  for (const DType dtype : {e4m3, e5m2})
    for (const double post_dropout : {0.0, 0.5}) {
      SCOPED_TRACE(std::string(to_string(dtype)) + (post_dropout > 0 ? ", dropout" : ""));
      support::MultiHeadCase c;
      c.attributes = {.heads = 2,
                      .q_projection = 3,
                      .k_projection = 3,
                      .v_projection = 2,
                      .softmax_scale = 0.5};
      c.attributes.post_dropout = post_dropout;
      Graph graph;
      const auto make = [&](const std::string& name, const Dims& dims) {
        return graph.input(name, dims, name == "d_o" ? dtype : f32);
      };
      using Op = MultiHeadAttentionBackwardData;
      const auto gradients = support::apply_multi_head<Op>(graph, c, make);
      graph.output("dq", gradients[Op::dq], {.dtype = f32});
      graph.output("dk", gradients[Op::dk], {.dtype = f32});
      graph.output("dv", gradients[Op::dv], {.dtype = f32});
      PlanCheck plan(std::move(graph));
      plan.expect_agrees("cpu.attention_tiled_backward");
    }
}

}  // namespace
}  // namespace ashlar::cpu
