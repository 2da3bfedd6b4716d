// Chooses the cache and thread blocking of a GEMM for a device.
#include <algorithm>

#include "base/checked.hpp"
#include "cpu/gemm/gemm_layout.hpp"

namespace ashlar::cpu {

namespace {

// Equal blocks of at most `most`, in multiples of `unit`.
std::int64_t even_block(std::int64_t extent, std::int64_t most, std::int64_t unit) {
  const std::int64_t count = std::max<std::int64_t>(divide_up(extent, most), 1);
  return std::max(unit, round_up(divide_up(extent, count), unit));
}

std::int64_t task_count(const GemmShape& shape, const GemmBlocks& blocks) {
  return shape.batch * divide_up(shape.m, blocks.rows) * divide_up(shape.n, blocks.columns);
}

// Flops of the GEMM padded to whole panels, plus the cost of packing in flops.
double equivalent_flops(const GemmShape& shape, const GemmBlocks& blocks,
                        std::int64_t element_bytes) {
  constexpr double kFlopsPerPackedElement = 40;
  const auto real = [](std::int64_t n) { return static_cast<double>(n); };
  const std::int64_t row_blocks = blocks.threads > 0 ? 1 : divide_up(shape.m, blocks.rows),
                     column_blocks = divide_up(shape.n, blocks.columns);
  const double arithmetic =
      2.0 * real(shape.m) * real(round_up(shape.n, 256 / element_bytes)) * real(shape.k);
  const double packed =
      real(shape.k) * (real(shape.m) * real(column_blocks) + real(shape.n) * real(row_blocks));
  return real(shape.batch) * (arithmetic + kFlopsPerPackedElement * packed);
}

}  // namespace

void GemmBlocks::to_knobs(Config& config) const {
  config.knobs = {{"rows", rows},     {"columns", columns}, {"k", k},
                  {"packed", packed}, {"splits", splits},   {"threads", threads}};
}

GemmBlocks GemmBlocks::from_knobs(const Config& config) {
  return {.rows = config.knob("rows"),
          .columns = config.knob("columns"),
          .k = config.knob("k"),
          .packed = config.knob("packed"),
          .splits = config.knob("splits"),
          .threads = config.knob("threads")};
}

GemmBlocks choose_blocks(const GemmShape& shape, const DeviceProps& device,
                         std::int64_t element_bytes, bool may_split, bool in_place) {
  const std::int64_t column_unit = 256 / element_bytes;
  const std::int64_t threads = std::max(device.compute_units, 1);
  GemmBlocks blocks;
  blocks.threads = threads;
  // KC: a panel of B (256 bytes wide) is reused by all rows of the block and takes a fifth of L2,
  // as does the next one being prefetched; panels of A pass through L1. MC: the block of A takes
  // three tenths of L2, since more rows mean fewer passes over B. A buffered block of C takes the
  // rest. A skinny GEMM works on four panels while four more are prefetched.
  const std::int64_t k_limit = shape.m <= kSkinny
                                   ? std::clamp<std::int64_t>(device.l1_bytes / 192, 64, 256)
                                   : std::clamp<std::int64_t>(device.l2_bytes / 1280, 64, 1024);
  blocks.k = even_block(shape.k, k_limit, 8);
  const std::int64_t row_limit =
      std::clamp<std::int64_t>(device.l2_bytes * 3 / 10 / (blocks.k * element_bytes),
                               kPanelRowMultiple, in_place ? 600 : 256);
  const std::int64_t column_limit = in_place ? 1024 : 512;
  const auto split_rows = [&](std::int64_t count) {
    const std::int64_t rows = divide_up(shape.m, std::max<std::int64_t>(count, 1));
    blocks.rows = std::max<std::int64_t>(rows, 1);
  };
  split_rows(divide_up(shape.m, row_limit));
  blocks.columns = even_block(shape.n, column_limit, column_unit);
  // B is packed whole if it fits half of L3, else in chunks of C's column blocks.
  const std::int64_t columns = round_up(shape.n, column_unit);
  const double room = static_cast<double>(std::max(device.l3_bytes / 2, device.l2_bytes)) /
                      static_cast<double>(element_bytes);
  const double matrix = static_cast<double>(columns) * static_cast<double>(shape.k);
  const double batches = std::clamp(room / std::max(matrix, 1.0), 1.0,
                                    static_cast<double>(std::max<std::int64_t>(shape.batch, 1)));
  const std::int64_t chunk = std::min(
      columns,
      std::max(blocks.columns, static_cast<std::int64_t>(
                                   room / static_cast<double>(std::max<std::int64_t>(shape.k, 1))) /
                                   blocks.columns * blocks.columns));
  blocks.packed = checked_mul(checked_mul(chunk, shape.k), static_cast<std::int64_t>(batches));
  // Balances the threads: shrinks blocks as long as they amortise their packing, to a multiple of
  // the thread count.
  while (task_count(shape, blocks) < threads) {
    const std::int64_t row_blocks = divide_up(shape.m, blocks.rows);
    if (blocks.rows >= 8 * kPanelRowMultiple)
      split_rows(2 * row_blocks);
    else if (blocks.columns >= 4 * column_unit)
      blocks.columns = even_block(shape.n, blocks.columns / 2, column_unit);
    else
      break;
  }
  while (task_count(shape, blocks) % threads != 0 && task_count(shape, blocks) < 8 * threads &&
         blocks.rows > 4 * kPanelRowMultiple)
    split_rows(divide_up(shape.m, blocks.rows) + 1);
  const std::int64_t tasks = std::max<std::int64_t>(task_count(shape, blocks), 1);
  if (may_split && tasks < threads)
    blocks.splits = std::clamp<std::int64_t>(divide_up(2 * threads, tasks), 1,
                                             std::max<std::int64_t>(shape.k / (4 * blocks.k), 1));
  return blocks;
}

GemmBlocks stack_blocks() { return {.rows = 48, .columns = 64, .k = 64}; }

std::int64_t gemm_scratch_bytes(const GemmShape& shape, const GemmBlocks& blocks,
                                std::int64_t element_bytes) {
  if (blocks.threads == 0) return 0;
  const std::int64_t line = kWorkspaceAlignment / element_bytes;
  std::int64_t elements = checked_add(round_up(blocks.packed, line),
                                      checked_mul(blocks.threads, GemmLayout(blocks, line).total));
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
                                 DType precision, const Cost& extra, bool may_split,
                                 bool in_place) {
  const std::int64_t bytes = bit_width(precision) / 8;
  const GemmShape largest = covering(shapes);
  const auto configuration = [&](const GemmBlocks& blocks) {
    Config config;
    blocks.to_knobs(config);
    config.scratch_bytes = gemm_scratch_bytes(largest, blocks, bytes);
    config.cost = extra;
    for (const GemmShape& shape : shapes)
      config.cost.flops += equivalent_flops(shape, blocks, bytes);
    config.cost.flops_fraction = 0.9;
    return config;
  };
  std::vector<Config> configs;
  if (largest.batch > 0 && largest.m > 0 && largest.n > 0 && largest.k > 0)
    configs.push_back(configuration(choose_blocks(largest, device, bytes, may_split, in_place)));
  configs.push_back(configuration(stack_blocks()));
  return configs;
}

}  // namespace ashlar::cpu
