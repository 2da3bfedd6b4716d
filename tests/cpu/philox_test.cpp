// The vectorised Philox stream against the scalar one.
#include "cpu/kernels/philox.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "base/philox.hpp"

namespace ashlar::cpu {
namespace {

TEST(PhiloxRow, GivesTheElementsOfTheStream) {
  constexpr std::uint64_t kSeed = 0xFEDCBA9876543210u;
  // Runs that begin and end inside a counter, and counters that carry into the upper half or wrap.
  for (std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{0xFFFFFFFE}, ~std::uint64_t{1}})
    for (std::uint64_t first : {0, 1, 2, 3, 64, 1021})
      for (std::int64_t count : {0, 1, 3, 4, 5, 31, 128, 130}) {
        std::vector<std::uint32_t> bits(static_cast<std::size_t>(count) + 1, 7);
        philox_row()(kSeed, offset, first, count, bits.data());
        for (std::int64_t i = 0; i < count; ++i)
          ASSERT_EQ(bits[static_cast<std::size_t>(i)],
                    philox_element(kSeed, offset, first + static_cast<std::uint64_t>(i)))
              << offset << " " << first << " " << count << " " << i;
        EXPECT_EQ(bits.back(), 7u);
      }
}

}  // namespace
}  // namespace ashlar::cpu
