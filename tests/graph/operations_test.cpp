// The operations as public data: operands, samples, contents of inputs.
#include <ashlar/operations.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "graph/op_traits.hpp"

namespace ashlar::tests {
namespace {

const OperationInfo& info(const std::string& name) {
  const auto& all = operations();
  return *std::find_if(all.begin(), all.end(),
                       [&](const OperationInfo& one) { return one.name == name; });
}

std::vector<std::string> names(const std::vector<OperandInfo>& operands) {
  std::vector<std::string> result;
  for (const OperandInfo& operand : operands)
    result.push_back(operand.name + (operand.is_optional ? "?" : operand.is_variadic ? "*" : ""));
  return result;
}

TEST(Operations, ListTheirOperands) {
  using testing::ElementsAre;
  EXPECT_EQ(operations().size(), std::variant_size_v<Op>);
  EXPECT_THAT(names(info("conv_forward").inputs), ElementsAre("x", "w", "z?"));
  EXPECT_THAT(names(info("conv_forward").outputs), ElementsAre("y"));
  EXPECT_THAT(names(info("moe_grouped_matmul_backward").inputs),
              ElementsAre("doutput", "token", "weight?", "first_token_offset", "token_index?",
                          "token_ks?"));
  EXPECT_THAT(names(info("concat").inputs), ElementsAre("x*"));
  EXPECT_THAT(names(info("rng").inputs), ElementsAre("seed_tensor?", "offset_tensor?"));
  EXPECT_EQ(info("attention_backward").inputs[AttentionBackward::scale_dp].name, "scale_dp");
  EXPECT_EQ(info("attention_backward").inputs.size(), AttentionBackward::scale_dp + 1u);
  EXPECT_EQ(info("ctc_loss").doc_page, "ctc");
}

TEST(Operations, HaveASampleThatUsesThem) {
  for (const OperationInfo& operation : operations()) {
    const Graph graph = sample_graph(operation.name, f32);
    EXPECT_NO_THROW(graph.validate()) << operation.name;
    const auto& nodes = graph.nodes();
    EXPECT_TRUE(std::any_of(nodes.begin(), nodes.end(), [&](const Node& node) {
      return traits_of(node.op).name == operation.name;
    })) << operation.name;
  }
}

TEST(Operations, RefuseUnknownNamesAndDtypes) {
  const auto code_of = [](const char* operation, DType dtype) {
    try {
      sample_graph(operation, dtype);
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::parse;  // none: sample_graph never throws it
  };
  EXPECT_EQ(code_of("relu6", f32), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of("softmax_forward", i32), ErrorCode::invalid_graph);
}

TEST(Contents, ComeFromTheOperationThatReadsTheInput) {
  Graph g;
  const Value container = g.input("container", {7, 2, 4, 8}, f16);
  const Value pages = g.input("pages", {3, 1, 5, 1}, i32);
  const Value lengths = g.input("lengths", {3, 1, 1, 1}, i32);
  const Value loaded = g.apply(PagedCacheLoad{},
                               {{PagedCacheLoad::container, container},
                                {PagedCacheLoad::page_table, pages},
                                {PagedCacheLoad::sequence, lengths}},
                               {PagedCacheLoad::y})[PagedCacheLoad::y];
  g.output("y", sqrt(loaded));
  EXPECT_TRUE(contents_of(g, container.id()).may_be_anything());
  const Contents page = contents_of(g, pages.id());
  EXPECT_EQ(page.kind, Contents::Kind::whole);
  EXPECT_EQ(page.low, 0);
  EXPECT_EQ(page.high, 6);
  EXPECT_EQ(page.below, 1);
  EXPECT_EQ(page.above, 1);
  const Contents length = contents_of(g, lengths.id());
  EXPECT_EQ(length.low, 1);
  EXPECT_EQ(length.high, 20);
  EXPECT_EQ(length.low - length.below, -1);
}

TEST(Contents, OfADtypeAreOrdinary) {
  Graph g;
  const Value flags = g.input("flags", {4}, boolean), counts = g.input("counts", {4}, u8);
  g.output("y", g.pointwise(PointwiseMode::logical_not, std::array{flags}));
  g.output("z", counts + g.input("x", {4}, f32));
  EXPECT_EQ(contents_of(g, flags.id()).kind, Contents::Kind::keep_mask);
  EXPECT_EQ(contents_of(g, counts.id()).low, 0);
  for (const Value& value : {flags, counts})
    EXPECT_TRUE(contents_of(g, value.id()).may_be_anything());
}

TEST(Contents, OfPoolingIndicesStayOutOfThePadding) {
  Graph g;
  const ResampleAttributes pool{.window = {3, 3}, .stride = {2, 2}, .padding = {1, 1}};
  const Value index = g.input("index", {1, 1, 3, 3}, i32);
  g.output("dx", g.resample_backward(g.input("dy", {1, 1, 3, 3}, f32), pool, {.dims = {1, 1, 5, 5}},
                                     {}, index));
  const Contents contents = contents_of(g, index.id());
  ASSERT_EQ(contents.kind, Contents::Kind::by_element);
  std::vector<double> corner, centre;  // all values, by a fine sweep of the random number
  constexpr int kSteps = 900;
  for (int i = 0; i < kSteps; ++i) {
    corner.push_back(contents.element(0, static_cast<double>(i) / kSteps));
    centre.push_back(contents.element(4, static_cast<double>(i) / kSteps));
  }
  for (std::vector<double>* values : {&corner, &centre}) {
    std::sort(values->begin(), values->end());
    values->erase(std::unique(values->begin(), values->end()), values->end());
  }
  EXPECT_THAT(corner, testing::ElementsAre(4, 5, 7, 8));
  EXPECT_THAT(centre, testing::ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8));
}

TEST(Contents, RowOffsetsFollowFromLengths) {
  Graph g;
  const Value offsets = g.input("offsets", {3, 1, 1, 1}, i32);
  const auto ragged = [&](const char* name) {
    return g.ragged_input(name, {2, 1, 6, 4}, f32, row_major, offsets);
  };
  const Value q_lengths = g.input("q_lengths", {2, 1, 1, 1}, i32);
  const Value kv_lengths = g.input("kv_lengths", {2, 1, 1, 1}, i32);
  const Value q = ragged("q"), k = ragged("k");
  const Value o =
      g.attention(q, k, k, {}, {.seq_len_q = q_lengths, .seq_len_kv = kv_lengths}).first;
  g.set_ragged(o, offsets);
  g.output("o", o);
  EXPECT_EQ(contents_of(g, offsets.id()).kind, Contents::Kind::row_offsets);
  // The longer of the two lengths of each row, times the stride of a position.
  const auto length = [&](TensorId lengths, std::int64_t row) {
    return lengths == q_lengths.id() ? 5.0 - 3.0 * static_cast<double>(row) : 3.0;
  };
  EXPECT_THAT(packed_row_offsets(g, offsets.id(), length), testing::ElementsAre(0, 20, 32));
}

}  // namespace
}  // namespace ashlar::tests
