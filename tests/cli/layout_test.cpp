// Drawings: what overlaps nothing, crosses little, and is the same every time.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "html/graph_layout.hpp"
#include "html/ordering.hpp"

namespace ashlar::cli::html {

namespace {

// Every box after the first reads one to three earlier ones.
Drawing random_drawing(unsigned seed, int count) {
  std::mt19937 random(seed);
  const auto below = [&](int limit) {
    return static_cast<int>(random() % static_cast<unsigned>(limit));
  };
  Drawing drawing;
  for (int i = 0; i < count; ++i) {
    drawing.boxes.push_back({20.0 + below(120), 20.0 + below(80)});
    for (int line = i == 0 ? 0 : 1 + below(3); line > 0; --line)
      drawing.lines.push_back({below(i), i, 0, static_cast<double>(below(10))});
  }
  return drawing;
}

bool overlap(const Drawing::Box& a, const Drawing::Box& b) {
  return a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
}

bool is_strictly_inside(const Drawing::Box& box, double x, double y) {
  constexpr double kEdge = 0.01;
  return x > box.x + kEdge && x < box.x + box.width - kEdge && y > box.y + kEdge &&
         y < box.y + box.height - kEdge;
}

TEST(GraphLayout, OverlapsNothing) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    Drawing drawing = random_drawing(seed, 5 + 4 * static_cast<int>(seed));
    lay_out(drawing);
    for (std::size_t i = 0; i < drawing.boxes.size(); ++i) {
      const Drawing::Box& box = drawing.boxes[i];
      EXPECT_GE(box.x, 0);
      EXPECT_LE(box.x + box.width, drawing.width + 1e-6);
      EXPECT_LE(box.y + box.height, drawing.height + 1e-6);
      for (std::size_t j = 0; j < i; ++j)
        EXPECT_FALSE(overlap(box, drawing.boxes[j])) << "seed " << seed << ": " << i << ", " << j;
    }
  }
}

TEST(GraphLayout, LinesGoDownAroundBoxes) {
  for (unsigned seed = 0; seed < 10; ++seed) {
    Drawing drawing = random_drawing(seed, 40);
    lay_out(drawing);
    for (const Drawing::Line& line : drawing.lines) {
      ASSERT_GE(line.points.size(), 2U);
      for (std::size_t i = 1; i < line.points.size(); ++i) {
        const Point &from = line.points[i - 1], &to = line.points[i];
        EXPECT_LE(from.y, to.y);
        // Curves lie between ranks, where no box is; vertical pieces are looked at here.
        for (const Drawing::Box& box : drawing.boxes)
          EXPECT_FALSE(from.x == to.x && is_strictly_inside(box, from.x, (from.y + to.y) / 2))
              << "seed " << seed;
      }
      const Drawing::Box& to = drawing.boxes[static_cast<std::size_t>(line.to)];
      EXPECT_NEAR(line.points.back().x, to.x + to.width / 2 + line.to_offset, 1e-6);
      EXPECT_NEAR(line.points.back().y, to.y, 1e-6);
    }
  }
}

TEST(GraphLayout, IsTheSameEveryTime) {
  Drawing one = random_drawing(3, 60), other = random_drawing(3, 60);
  lay_out(one);
  lay_out(other);
  for (std::size_t i = 0; i < one.boxes.size(); ++i) {
    EXPECT_EQ(one.boxes[i].x, other.boxes[i].x);
    EXPECT_EQ(one.boxes[i].y, other.boxes[i].y);
  }
}

TEST(GraphLayout, PortsAreOutermost) {
  Drawing drawing;
  drawing.boxes = {{50, 20}, {50, 20}, {6, 0, Drawing::Rank::first}, {6, 0, Drawing::Rank::last}};
  drawing.lines = {{0, 1}, {2, 1}, {0, 3}};
  lay_out(drawing);
  EXPECT_LT(drawing.boxes[2].y, drawing.boxes[0].y);
  EXPECT_GT(drawing.boxes[3].y, drawing.boxes[1].y);
}

TEST(GraphLayout, TakesEmptyAndSingleDrawings) {
  Drawing nothing, one;
  lay_out(nothing);
  EXPECT_EQ(nothing.height, 0);
  one.boxes = {{30, 10}};
  lay_out(one);
  EXPECT_EQ(one.width, 30);
  EXPECT_EQ(one.height, 10);
}

TEST(Ordering, RemovesCrossingsThatNeedNotBe) {
  std::vector<std::vector<std::size_t>> ranks = {{0, 1, 2}, {3, 4, 5}};
  const std::vector<OrderLink> links = {{0, 5}, {1, 4}, {2, 3}};
  EXPECT_EQ(count_crossings(ranks, links), 3U);
  reduce_crossings(ranks, links);
  EXPECT_EQ(count_crossings(ranks, links), 0U);
}

}  // namespace

}  // namespace ashlar::cli::html
