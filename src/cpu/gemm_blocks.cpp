// How a product is cut for a device.
#include <algorithm>

#include "base/checked.hpp"
#include "cpu/gemm.hpp"

namespace ashlar::cpu {

namespace {

// Equal blocks no larger than `most`, in whole multiples of `unit`.
std::int64_t even_block(std::int64_t extent, std::int64_t most, std::int64_t unit) {
  const std::int64_t count = std::max<std::int64_t>(divide_up(extent, most), 1);
  return std::max(unit, round_up(divide_up(extent, count), unit));
}

std::int64_t task_count(const GemmShape& shape, const GemmBlocks& blocks) {
  return shape.batch * divide_up(shape.m, blocks.rows) * divide_up(shape.n, blocks.columns);
}

// Arithmetic of the product, padded to panels, and what could be done in the time packing takes.
double equivalent_flops(const GemmShape& shape, const GemmBlocks& blocks,
                        std::int64_t element_bytes) {
  constexpr double kFlopsPerPackedElement = 60;
  const auto real = [](std::int64_t n) { return static_cast<double>(n); };
  const std::int64_t row_blocks = divide_up(shape.m, blocks.rows),
                     column_blocks = divide_up(shape.n, blocks.columns);
  const double arithmetic =
      2.0 * real(shape.m) * real(round_up(shape.n, 128 / element_bytes)) * real(shape.k);
  const double packed = real(shape.k) * (real(shape.m) * real(column_blocks) +
                                         real(shape.n) * real(blocks.keep_b ? 1 : row_blocks));
  return real(shape.batch) * (arithmetic + kFlopsPerPackedElement * packed);
}

}  // namespace

void GemmBlocks::to_knobs(Config& config) const {
  config.knobs = {{"rows", rows},     {"columns", columns}, {"depth", depth},
                  {"keep_b", keep_b}, {"splits", splits},   {"threads", threads}};
}

GemmBlocks GemmBlocks::from_knobs(const Config& config) {
  return {.rows = config.knob("rows"),
          .columns = config.knob("columns"),
          .depth = config.knob("depth"),
          .keep_b = config.knob("keep_b") != 0,
          .splits = config.knob("splits"),
          .threads = config.knob("threads")};
}

GemmBlocks choose_blocks(const GemmShape& shape, const DeviceProps& device,
                         std::int64_t element_bytes, bool may_split) {
  const std::int64_t column_unit = 128 / element_bytes;
  const std::int64_t threads = std::max(device.compute_units, 1);
  GemmBlocks blocks;
  blocks.threads = threads;
  // One panel of B (128 bytes wide) takes two thirds of L1.
  const std::int64_t depth_limit = std::clamp<std::int64_t>(device.l1_bytes * 2 / 3 / 128, 64, 512);
  blocks.depth = even_block(shape.k, depth_limit, 8);
  // A's block takes a quarter of L2, the block of C as much as L2.
  const std::int64_t row_limit =
      std::clamp<std::int64_t>(device.l2_bytes / 4 / (blocks.depth * element_bytes), 48, 240);
  blocks.rows = even_block(shape.m, row_limit, kGemmRowMultiple);
  const std::int64_t column_limit = std::clamp<std::int64_t>(
      round_up(device.l2_bytes / (blocks.rows * element_bytes), column_unit), 128, 1024);
  blocks.columns = even_block(shape.n, column_limit, column_unit);
  // B's block is kept while it fits a thread's share of half the last cache.
  const std::int64_t kept_bytes = std::max(device.l3_bytes / 2 / threads, device.l2_bytes);
  while (blocks.columns > 256 && shape.k * blocks.columns * element_bytes > kept_bytes)
    blocks.columns = even_block(shape.n, blocks.columns / 2, column_unit);
  blocks.keep_b = shape.k * blocks.columns * element_bytes <= kept_bytes;
  // Every thread should get something to do: two tasks each, in blocks that still pay for their
  // packing.
  while (task_count(shape, blocks) < 2 * threads) {
    const GemmBlocks before = blocks;
    if (shape.m > blocks.rows / 2 && blocks.rows > 4 * kGemmRowMultiple)
      blocks.rows = even_block(shape.m, blocks.rows / 2, kGemmRowMultiple);
    else if (shape.n > blocks.columns / 2 && blocks.columns > 4 * column_unit)
      blocks.columns = even_block(shape.n, blocks.columns / 2, column_unit);
    if (blocks.rows == before.rows && blocks.columns == before.columns) break;
  }
  const std::int64_t tasks = std::max<std::int64_t>(task_count(shape, blocks), 1);
  if (may_split && tasks < threads)
    blocks.splits = std::clamp<std::int64_t>(
        divide_up(2 * threads, tasks), 1, std::max<std::int64_t>(shape.k / (4 * blocks.depth), 1));
  return blocks;
}

GemmBlocks stack_blocks() { return {.rows = 48, .columns = 64, .depth = 128}; }

std::int64_t gemm_scratch_bytes(const GemmShape& shape, const GemmBlocks& blocks,
                                std::int64_t element_bytes) {
  if (blocks.threads == 0) return 0;
  const std::int64_t b_depth = blocks.keep_b ? shape.k : blocks.depth;
  const std::int64_t per_thread = blocks.rows * blocks.depth +
                                  checked_mul(blocks.columns, b_depth) +
                                  blocks.rows * blocks.columns;
  const std::int64_t line = kWorkspaceAlignment / element_bytes;
  std::int64_t elements = checked_mul(blocks.threads, round_up(per_thread, line));
  if (blocks.splits > 1)
    elements = checked_add(elements, checked_mul(checked_mul(blocks.splits, shape.batch),
                                                 checked_mul(shape.m, shape.n)));
  return checked_mul(elements, element_bytes);
}

GemmShape covering(std::span<const GemmShape> shapes) {
  GemmShape result{.batch = 0};
  for (const GemmShape& shape : shapes) {
    result.batch = std::max(result.batch, shape.batch);
    result.m = std::max(result.m, shape.m);
    result.n = std::max(result.n, shape.n);
    result.k = std::max(result.k, shape.k);
  }
  return result;
}

std::vector<Config> gemm_configs(std::span<const GemmShape> shapes, const DeviceProps& device,
                                 DType precision, const Cost& extra, bool may_split) {
  const std::int64_t bytes = bit_width(precision) / 8;
  const GemmShape largest = covering(shapes);
  const auto configuration = [&](const GemmBlocks& blocks) {
    Config config;
    blocks.to_knobs(config);
    config.scratch_bytes = gemm_scratch_bytes(largest, blocks, bytes);
    config.cost = extra;
    for (const GemmShape& shape : shapes)
      config.cost.flops += equivalent_flops(shape, blocks, bytes);
    config.cost.flops_fraction = 0.8;
    return config;
  };
  std::vector<Config> configs;
  if (largest.batch > 0 && largest.m > 0 && largest.n > 0 && largest.k > 0)
    configs.push_back(configuration(choose_blocks(largest, device, bytes, may_split)));
  configs.push_back(configuration(stack_blocks()));
  return configs;
}

}  // namespace ashlar::cpu
