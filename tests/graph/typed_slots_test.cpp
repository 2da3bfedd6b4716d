// Graph::apply: slots of another operation and numbers do not compile; apply_any checks at run
// time.
#include <gtest/gtest.h>

#include <array>
#include <ashlar/graph.hpp>

namespace ashlar {
namespace {

template <class O, class Slot>
concept TakesOperand = requires(Graph graph, O op, Slot slot, Value value) {
  graph.apply(op, {{slot, value}}, {});
};
template <class O, class Slot>
concept GivesOutput = requires(Graph graph, O op, Slot slot) {
  graph.apply(op, {}, {slot});
};
template <class O, class Slot>
concept HasOutput = requires(Outputs<O> outputs, Slot slot) {
  outputs[slot];
};

static_assert(TakesOperand<GenStats, GenStats::In>);
static_assert(!TakesOperand<GenStats, Matmul::In>);
static_assert(!TakesOperand<GenStats, GenStats::Out>);
static_assert(!TakesOperand<GenStats, int>);
static_assert(GivesOutput<GenStats, GenStats::Out>);
static_assert(!GivesOutput<GenStats, BnFinalize::Out>);
static_assert(!GivesOutput<GenStats, GenStats::In>);
static_assert(!GivesOutput<GenStats, int>);
static_assert(HasOutput<GenStats, GenStats::Out>);
static_assert(!HasOutput<GenStats, Reduction::Out>);
static_assert(!HasOutput<GenStats, GenStats::In>);
static_assert(!HasOutput<GenStats, int>);
// Operations that share their attributes and their enumerators' names.
static_assert(!TakesOperand<AttentionForward, AttentionBackward::In>);
static_assert(!TakesOperand<ConvForward, ConvBackwardData::In>);
static_assert(TakesOperand<Concat, Concat::In>);
static_assert(!TakesOperand<Concat, Slice::In>);
static_assert(!Operation<Op> && !Operation<AttentionAttributes> && Operation<Pointwise>);

TEST(TypedSlots, OutputsByName) {
  Graph g;
  const auto stats = g.apply(GenStats{}, {{GenStats::x, g.input("x", {2, 4, 3, 3}, f32)}},
                             {GenStats::sum, {GenStats::sq_sum, f64}});
  EXPECT_EQ(stats[GenStats::sum].tensor().name, "gen_stats_0.sum");
  EXPECT_EQ(stats[GenStats::sq_sum].dtype(), f64);
  EXPECT_EQ(stats.all().size(), 2);
  const auto best = g.apply(Reduction{.mode = ReductionMode::max, .axes = {1}},
                            {{Reduction::x, g.input("z", {2, 4}, f32)}});
  EXPECT_TRUE(best[Reduction::y]);
  EXPECT_FALSE(best[Reduction::index]);
  EXPECT_EQ(Value(best).id(), best[Reduction::y].id());
}

TEST(TypedSlots, ConcatTakesItsSlotRepeatedly) {
  Graph g;
  const Value a = g.input("a", {2, 3}, f32), b = g.input("b", {2, 5}, f32);
  const Value y = g.apply(Concat{.axis = 1}, {{Concat::x, a}, {Concat::x, b}, {Concat::x, a}});
  EXPECT_EQ(y.dims(), (Dims{2, 11}));
  EXPECT_EQ(g.nodes()[0].inputs, (std::vector<TensorId>{a.id(), b.id(), a.id()}));
}

template <class Call>
std::string message_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(TypedSlots, ApplyAnyChecksNumbers) {
  Graph g;
  const Value x = g.input("x", {2, 4}, f32);
  const auto apply = [&](int in, int out) {
    return g.apply_any(Reduction{.mode = ReductionMode::max, .axes = {1}},
                       std::array{AnyOperand{in, x}}, std::array{AnyWanted{out, i64}});
  };
  EXPECT_EQ(message_of([&] { apply(1, 0); }), "reduction: input slot: got 1, expected 0 to 0");
  EXPECT_EQ(message_of([&] { apply(-1, 0); }), "reduction: input slot: got -1, expected 0 to 0");
  EXPECT_EQ(message_of([&] { apply(0, 2); }), "reduction: output slot: got 2, expected 0 to 1");
  EXPECT_TRUE(g.nodes().empty());
  const std::vector<Value> outputs = apply(0, Reduction::index);
  EXPECT_EQ(outputs[Reduction::index].dtype(), i64);
}

}  // namespace
}  // namespace ashlar
