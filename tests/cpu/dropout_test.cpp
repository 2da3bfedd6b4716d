// Dropout forward and backward.
#include "base/dropout.hpp"

#include <cmath>

#include "base/philox.hpp"
#include "cpu/kernels/philox.hpp"
#include "cpu/plan_check.hpp"

namespace ashlar::cpu {
namespace {

TEST(Philox, DrawsWhatTheScalarFormDraws) {
  for (const std::uint64_t counter : {0ull, 5ull, 0xFFFFFFFDull, 0xFFFFFFFFFFFFFFFBull})
    for (const std::int64_t counters : {1, 7, 16, 33}) {
      std::vector<std::uint32_t> bits(static_cast<std::size_t>(4 * counters));
      for (const std::uint64_t first : {0u, 1u, 7u}) {
        philox_row()(0x123456789ABCDEFu, counter, first, 4 * counters, bits.data());
        for (std::uint64_t i = 0; i < bits.size(); ++i)
          ASSERT_EQ(bits[i], philox_element(0x123456789ABCDEFu, counter, first + i))
              << counter << " " << first << " " << i;
      }
    }
}

struct Dropped {
  std::vector<double> y, mask, next;
};

Dropped drop(const Dims& dims, double seed, double offset, DType dtype = f32,
             const Layout& layout = row_major) {
  using Op = DropoutForward;
  Graph g;
  Op op;
  op.probability = 0.3;
  const auto results = g.apply(op,
                               {{Op::x, g.input("x", dims, dtype, layout)},
                                {Op::seed_tensor, g.input("seed", {1}, i64)},
                                {Op::offset_tensor, g.input("offset", {1}, i64)}},
                               {Op::y, Op::mask, Op::next_offset});
  g.output("y", results[Op::y]);
  g.output("mask", results[Op::mask]);
  g.output("next", results[Op::next_offset]);
  PlanCheck plan(std::move(g));
  plan.set("seed", {seed});
  plan.set("offset", {offset});
  plan.expect_agrees("cpu.dropout");
  return {plan.get("y"), plan.get("mask"), plan.get("next")};
}

TEST(DropoutEngine, LayoutsAndDtypes) {
  for (const DType dtype : kFloats) {
    const auto rows = drop({3, 70, 1001}, 5, 17, dtype);
    EXPECT_EQ(rows.mask, drop({3, 70, 1001}, 5, 17, dtype, channels_last).mask)
        << "decisions do not depend on strides";
  }
}

// Seed and offset are the whole state.
TEST(DropoutEngine, ChainedCallsEqualOneCall) {
  const Dropped whole = drop({40004}, 3, 1000), first = drop({25000}, 3, 1000);
  const Dropped second = drop({15004}, 3, first.next[0]);
  std::vector<double> joined = first.mask;
  joined.insert(joined.end(), second.mask.begin(), second.mask.end());
  EXPECT_EQ(joined, whole.mask);
  EXPECT_EQ(second.next, whole.next);
  EXPECT_EQ(drop({15004}, 3, first.next[0]).mask, second.mask) << "restored";
}

TEST(DropoutEngine, DropsAsManyAsAsked) {
  double kept = 0;
  for (const double bit : drop({40000}, 11, 0).mask) kept += bit;
  EXPECT_NEAR(kept / 40000, 0.7, 5 * std::sqrt(0.3 * 0.7 / 40000));
}

}  // namespace
}  // namespace ashlar::cpu
