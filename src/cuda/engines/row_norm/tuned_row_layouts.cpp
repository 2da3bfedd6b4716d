#include "cuda/engines/row_norm/tuned_row_layouts.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

namespace ashlar::cuda {

namespace {

using Kind = RowProblem::Kind;

constexpr int kNone = 0, kPipeline = RowLayout::kPipeline;
constexpr int kMost = 16;  // CTAs per SM: as many as fit

// Pipelines with about 190 KB of rows in flight per SM, in small groups of threads that only wait
// for their own copies; long rows leave room for few.
constexpr TunedRowLayout kForward[] = {
    {2, 256, 16, 16, 2, 4, kPipeline, 4},   {2, 2048, 64, 16, 1, 1, kPipeline, 4},
    {2, 4096, 128, 8, 1, 2, kPipeline, 3},  {2, 8192, 256, 4, 1, 2, kPipeline, 3},
    {2, 10240, 80, 2, 1, 3, kPipeline, 3},  {2, 12288, 96, 2, 1, 3, kPipeline, 3},
    {2, 16384, 128, 2, 1, 2, kPipeline, 3}, {2, 32768, 64, 2, 1, 1, kPipeline, 2},
    {2, 65536, 128, 1, 1, 1, kPipeline, 3}, {4, 16384, 32, 2, 1, 1, kPipeline, 4},
};
// With scale and bias, which double the registers for parameters.
constexpr TunedRowLayout kForwardWithBias[] = {
    {2, 256, 16, 16, 2, 4, kPipeline, 4},  {2, 2048, 64, 16, 1, 1, kPipeline, 4},
    {2, 8192, 128, 2, 1, 4, kPipeline, 2}, {2, 10240, 160, 2, 1, 2, kPipeline, 4},
    {2, 24576, 96, 1, 1, 2, kPipeline, 2}, {2, 65536, 128, 1, 1, 1, kPipeline, 3},
    {4, 16384, 64, 1, 1, 3, kNone, 0},
};
// Few CTAs with column sums each: 60 to 130 KB in flight are enough.
constexpr TunedRowLayout kBackward[] = {
    {2, 256, 32, 16, 2, 2, kPipeline, 3},  {2, 2048, 64, 4, 1, 2, kPipeline, 3},
    {2, 4096, 32, 2, 1, 2, kPipeline, 2},  {2, 8192, 32, 2, 1, 1, kPipeline, 2},
    {2, 10240, 80, 2, 1, 1, kPipeline, 2}, {2, 12288, 48, 2, 1, 1, kPipeline, 2},
    {2, 16384, 32, 1, 1, 1, kPipeline, 3}, {2, 24576, 96, 1, 1, 1, kPipeline, 2},
    {2, 32768, 32, 1, 1, 1, kPipeline, 2}, {2, 65536, 128, 1, 1, 1, kPipeline, 2, true, 2},
    {4, 16384, 32, 1, 1, 1, kPipeline, 3},
};
// One warp per row where its registers hold one.
constexpr TunedRowLayout kSoftmaxForward[] = {
    {2, 2048, 64, 8, 1, kMost, kNone, 0},   {2, 4096, 128, 8, 1, kMost, kNone, 0},
    {2, 8192, 256, 4, 1, kMost, kNone, 0},  {2, 16384, 128, 1, 1, kMost, kNone, 0},
    {2, 32768, 64, 1, 1, kMost, kNone, 0},  {2, 65536, 128, 1, 1, kMost, kNone, 0},
    {4, 4096, 128, 8, 1, kMost, kNone, 0},  {4, 8192, 256, 8, 1, kMost, kNone, 0},
    {4, 16384, 128, 1, 1, kMost, kNone, 0}, {4, 32768, 64, 1, 1, kMost, kNone, 0},
    {4, 65536, 128, 1, 1, kMost, kNone, 0},
};
constexpr TunedRowLayout kSoftmaxBackward[] = {
    {2, 2048, 64, 4, 1, kMost, kNone, 0},  {2, 4096, 128, 8, 1, kMost, kNone, 0},
    {2, 8192, 64, 1, 1, kMost, kNone, 0},  {2, 16384, 32, 1, 1, kMost, kNone, 0},
    {2, 32768, 64, 1, 1, kMost, kNone, 0}, {4, 4096, 128, 4, 1, kMost, kNone, 0},
    {4, 8192, 64, 1, 1, kMost, kNone, 0},  {4, 16384, 32, 1, 1, kMost, kNone, 0},
    {4, 32768, 32, 1, 1, kMost, kNone, 0}, {4, 65536, 64, 1, 1, kMost, kNone, 0},
};
// Large fused epilogues are issue-bound: warps that never synchronise with each other.
constexpr TunedRowLayout kComputeBound[] = {
    {2, 8192, 256, 8, 1, 2, kNone, 0, false},
    {4, 16384, 128, 1, 1, 8, kNone, 0, false},
};
constexpr TunedRowLayout kFusedPrologue[] = {
    {2, 8192, 256, 4, 1, 3, kNone, 0},
    {4, 16384, 128, 1, 1, 8, kNone, 0},
};

std::span<const TunedRowLayout> tuned_layouts_for(const RowProblem& problem) {
  const bool works_before = !problem.first.empty() && staged_bytes(problem, problem.first) == 0;
  switch (problem.kind) {
    case Kind::norm_forward:
      if (is_compute_bound(problem)) return kComputeBound;
      if (works_before) return kFusedPrologue;
      if (!problem.bias.empty()) return kForwardWithBias;
      return kForward;
    case Kind::norm_backward: return kBackward;
    case Kind::softmax_forward:
      if (works_before) return kFusedPrologue;
      return kSoftmaxForward;
    case Kind::softmax_backward: break;
  }
  return kSoftmaxBackward;
}

int element_bytes(const RowProblem& problem) {
  for (const auto& step : problem.first.steps)
    if (step.kind == PointwiseProgram::Step::Kind::load)
      return std::max(bit_width(step.view.dtype) / 8, 1);
  return 4;
}

double steps(double a, double b) { return std::fabs(std::log2(a / b)); }

}  // namespace

const TunedRowLayout& tuned_layout_for(const RowProblem& problem) {
  constexpr double kOtherWidth = 8;  // a different element size counts more than a different length
  const int own_bytes = element_bytes(problem);
  const TunedRowLayout* nearest = nullptr;
  double least = std::numeric_limits<double>::infinity();
  for (const TunedRowLayout& recipe : tuned_layouts_for(problem)) {
    const double far = steps(static_cast<double>(problem.length * own_bytes), recipe.row_bytes) +
                       kOtherWidth * steps(own_bytes, recipe.element_bytes);
    if (far < least) {
      least = far;
      nearest = &recipe;
    }
  }
  return *nearest;
}

double distance(const RowProblem& problem, const RowLayout& layout, const TunedRowLayout& recipe) {
  constexpr double kOthers = 0.5, kPastEnd = 4, kSlices = 2, kPlace = 2, kAhead = 4;
  const double row_threads = layout.row_threads * layout.slices;
  const double own = static_cast<double>(problem.length * element_bytes(problem)) / row_threads;
  const double covered = row_threads * layout.chunks * layout.vector;
  double far = steps(own, recipe.thread_bytes) + kSlices * steps(layout.slices, recipe.slices);
  far += kOthers * (steps(layout.groups(), recipe.groups) + steps(layout.unroll, recipe.unroll) +
                    steps(layout.blocks, recipe.blocks));
  if (layout.ahead == kPipeline && recipe.ahead == kPipeline)
    far += kOthers * steps(layout.stages, recipe.stages);
  if (layout.ahead != recipe.ahead) far += kAhead;
  if (layout.parameters_in_registers != recipe.parameters_in_registers) far += kPlace;
  if (layout.shared_sums != recipe.shared_sums) far += kPlace;
  // Warps of a CTA should fill the four SM sub-partitions evenly.
  constexpr int kAllParts = 128;
  if (layout.threads % kAllParts != 0) far += kOthers;
  return far + kPastEnd * (covered / static_cast<double>(problem.length) - 1.0);
}

}  // namespace ashlar::cuda
