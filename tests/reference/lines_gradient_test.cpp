// gradients() of scans and of padding against central differences.
#include <gmock/gmock.h>

#include <ashlar/gradients.hpp>

#include "reference/differences.hpp"

namespace ashlar::reference {
namespace {

TEST(ScanGradient, MatchesDifferences) {
  for (const bool exclusive : {false, true})
    for (const bool reverse : {false, true})
      expect_matching_gradients([&](Graph& g) {
        const Value x = g.input("x", {3, 5, 2}, f64);
        const Scan op{.axis = 1, .exclusive = exclusive, .reverse = reverse};
        return Function{g.apply(op, {{Scan::x, x}}), {x}};
      });
}

TEST(ScanGradient, IsOfSumsOnly) {
  Graph g;
  const Value x = g.input("x", {4}, f32);
  const Value y = g.apply(Scan{.mode = ScanMode::max}, {{Scan::x, x}});
  try {
    gradients(g, std::array{g.reduce(y, ReductionMode::add)}, std::array{x});
    FAIL() << "was accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("only scans of mode add have a gradient"));
  }
}

TEST(PadGradient, MatchesDifferences) {
  for (const PadMode mode :
       {PadMode::constant, PadMode::reflect, PadMode::edge, PadMode::circular}) {
    const Dims before = {1, mode == PadMode::constant ? -2 : 2}, after = {0, 3};
    expect_matching_gradients([&](Graph& g) {
      const Value x = g.input("x", {2, 4}, f64);
      const Pad op{.mode = mode, .before = before, .after = after, .value = 0.5};
      return Function{g.apply(op, {{Pad::x, x}}), {x}};
    });
    expect_matching_gradients([&](Graph& g) {
      const Value x = g.input("x", {3, 9}, f64);
      const PadBackward op{.mode = mode, .before = before, .after = after};
      return Function{g.apply(op, {{PadBackward::dy, x}}), {x}};
    });
  }
}

}  // namespace
}  // namespace ashlar::reference
