// Random graphs: multi-head attention.
#include "random/graph_maker.hpp"
#include "support/multi_head_problem.hpp"

namespace ashlar::random_graphs {

void GraphMaker::add_multi_head() {
  support::MultiHeadCase c;
  MultiHeadAttentionAttributes& op = c.attributes;
  op.heads = 1 + below(3);
  c.batch = 1 + below(2);
  c.beams = 1 + below(2);
  c.key_beams = chance(0.5) ? c.beams : 1;
  c.queries = 1 + below(5);
  c.keys = 1 + below(6);
  c.q_size = 1 + below(4);
  c.k_size = chance(0.5) ? c.q_size : 1 + below(4);
  c.v_size = 1 + below(4);
  if (c.k_size != c.q_size || chance(0.7)) op.q_projection = op.k_projection = 1 + below(4);
  if (chance(0.7)) op.v_projection = 1 + below(4);
  if (chance(0.7)) op.o_projection = 1 + below(5);
  op.projection_biases = chance(0.5);
  op.softmax_scale = chance(0.5) ? 0.5 : 1.0;
  if (chance(0.2)) op.attention_dropout = 0.25;
  if (chance(0.2)) op.post_dropout = 0.25;
  c.residual = chance(0.3);
  c.lengths = chance(0.3);
  c.low = chance(0.2);
  c.high = chance(0.3);
  c.previous = chance(0.3);

  c.suffix = name("_mh");

  const DType dtype = floating();
  const auto make = [&](const std::string&, const Dims& dims) { return like(dims, dtype); };
  const std::int64_t kind = below(c.shape().weight_count > 0 ? 3 : 2);
  std::vector<Value> results;
  if (kind == 0)
    results = support::apply_multi_head<MultiHeadAttentionForward>(graph_, c, make, spec()).all();
  else if (kind == 1)
    results = support::apply_multi_head<MultiHeadAttentionBackwardData>(graph_, c, make).all();
  else
    results = support::apply_multi_head<MultiHeadAttentionBackwardWeights>(graph_, c, make).all();
  for (Value value : results) keep(value);
}

}  // namespace ashlar::random_graphs
