// Dims, layouts and checked arithmetic.
#include <gtest/gtest.h>
#include <ashlar/dims.hpp>
#include <ashlar/error.hpp>

#include <functional>
#include <limits>
#include <vector>

#include "base/checked.hpp"

namespace ashlar {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

ErrorCode code_of(const std::function<void()>& attempt) {
  try {
    attempt();
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "nothing was thrown";
  return ErrorCode::internal;
}

TEST(Dims, HoldsUpToEightValues) {
  const Dims dims = {1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_EQ(dims.rank(), kMaxRank);
  EXPECT_EQ(dims[7], 8);
  EXPECT_EQ(to_string(dims), "[1, 2, 3, 4, 5, 6, 7, 8]");
  EXPECT_EQ(code_of([] { Dims({1, 1, 1, 1, 1, 1, 1, 1, 1}); }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([&] { Dims(dims).push_back(1); }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([] { Dims::filled(9, 1); }), ErrorCode::invalid_argument);
}

TEST(Dims, ComparesByRankAndValue) {
  EXPECT_EQ(Dims({2, 3}), Dims({2, 3}));
  EXPECT_NE(Dims({2, 3}), Dims({2, 3, 1}));
  EXPECT_NE(Dims({2, 3}), Dims({3, 2}));
  EXPECT_EQ(Dims(), Dims::filled(0, 5));
  EXPECT_TRUE(Dims().empty());
}

TEST(Dims, CountsElements) {
  EXPECT_EQ(element_count({2, 3, 4}), 24);
  EXPECT_EQ(element_count({}), 1);
  EXPECT_EQ(element_count({std::int64_t{1} << 40, 1 << 20}), std::int64_t{1} << 60);
  EXPECT_EQ(element_count({kMax}), kMax);
  EXPECT_EQ(code_of([] { element_count({kMax, 2}); }), ErrorCode::size_overflow);
}

TEST(Dims, AnyZeroExtentMeansNoElements) {
  EXPECT_EQ(element_count({kMax, kMax, 0}), 0);
  EXPECT_EQ(element_count({0, kMax, kMax}), 0);
  EXPECT_EQ(row_major.strides_for({2, 0, 3}), Dims({3, 3, 1}));
  EXPECT_NO_THROW(row_major.strides_for({0, kMax, kMax}));
  EXPECT_NO_THROW(channels_last.strides_for({kMax, kMax, 0, 1}));
}

TEST(Checked, ReportsOverflowInBothDirections) {
  EXPECT_EQ(checked_mul(kMax / 2, 2), kMax - 1);
  EXPECT_EQ(checked_add(kMax - 1, 1), kMax);
  EXPECT_EQ(code_of([] { checked_add(kMax, 1); }), ErrorCode::size_overflow);
  EXPECT_EQ(code_of([] { checked_add(-kMax, -2); }), ErrorCode::size_overflow);
  EXPECT_EQ(code_of([] { checked_mul(-kMax, 2); }), ErrorCode::size_overflow);
}

TEST(Checked, OverflowErrorNamesTheTensor) {
  try {
    naming_overflow([] { return "tensor 'x'"; }, [] { return checked_mul(kMax, kMax); });
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::size_overflow);
    EXPECT_EQ(std::string(error.what()).find("tensor 'x': size overflow: got 9223"), 0u);
  }
  EXPECT_EQ(
      code_of([] { naming_overflow([] { return ""; }, [] { fail(ErrorCode::io, "other"); }); }),
      ErrorCode::io);
}

TEST(Layout, RowMajorAndChannelsLast) {
  EXPECT_EQ(row_major.strides_for({2, 3, 4, 5}), Dims({60, 20, 5, 1}));
  EXPECT_EQ(channels_last.strides_for({2, 3, 4, 5}), Dims({60, 1, 15, 3}));
  EXPECT_EQ(channels_last.strides_for({2, 3, 4}), Dims({12, 1, 3}));
  EXPECT_EQ(channels_last.strides_for({2, 3, 4, 5, 6}), Dims({360, 1, 90, 18, 3}));
  EXPECT_EQ(channels_last.strides_for({2, 3}), Dims({3, 1}));
  EXPECT_EQ(channels_last.strides_for({7}), Dims({1}));
  EXPECT_EQ(Layout(Dims{100, 7}).strides_for({2, 3}), Dims({100, 7}));
  EXPECT_EQ(code_of([] { row_major.strides_for({2, kMax, kMax}); }), ErrorCode::size_overflow);
}

TEST(Layout, InheritsTheOrderOfAnotherTensor) {
  const Dims nhwc = channels_last.strides_for({2, 3, 4, 5});
  EXPECT_EQ(packed_strides_like({2, 8, 2, 2}, nhwc), channels_last.strides_for({2, 8, 2, 2}));
  EXPECT_EQ(packed_strides_like({2, 3}, {1, 2}), Dims({1, 2}));
  EXPECT_EQ(packed_strides_like({4, 5, 6}, {1, 100, 10}), Dims({1, 24, 4}));
  // Padding between rows is not inherited.
  EXPECT_EQ(packed_strides_like({2, 3}, {64, 1}), Dims({3, 1}));
}

TEST(Layout, EqualStridesKeepRowMajorOrder) {
  EXPECT_EQ(packed_strides_like({2, 3, 4}, {0, 0, 0}), Dims({12, 4, 1}));
  EXPECT_EQ(packed_strides_like({2, 3, 4}, {1, 1, 1}), Dims({12, 4, 1}));
}

TEST(Layout, PackedStridesGiveEveryElementItsOwnAddress) {
  const Dims dims = {3, 4, 5};
  for (const Dims& like : {Dims{20, 5, 1}, Dims{1, 3, 12}, Dims{5, 15, 1}, Dims{4, 1, 12}}) {
    const Dims strides = packed_strides_like(dims, like);
    std::vector<int> hits(60);
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 4; ++j)
        for (int k = 0; k < 5; ++k)
          ++hits.at(static_cast<std::size_t>(i * strides[0] + j * strides[1] + k * strides[2]));
    EXPECT_EQ(hits, std::vector<int>(60, 1)) << to_string(strides);
  }
}

}  // namespace
}  // namespace ashlar
