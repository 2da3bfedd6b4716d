#include "cuda/engines/sm80/attention_design.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "base/ceil_div.hpp"
#include "cuda/engines/gemm_tails.hpp"
#include "cuda/engines/tile_cost.hpp"

namespace ashlar::cuda {

using Forward = AttentionForward;

namespace {

constexpr std::int64_t kMaxHeadDim = 256, kMaxLength = 1 << 28, kMaxRegisters = 255;
constexpr std::int64_t kFragment = 16, kRowPadding = 16;  // elements; bytes

}  // namespace

AttentionDesigner::AttentionDesigner(const Region& region, const DeviceProps& device)
    : region_(region), device_(device), problem_(region) {}

Support AttentionDesigner::support() const {
  const AttentionProblem& p = problem_;
  if (device_.compute_capability < 80)
    return Support::no("needs sm_80, the device is sm_{}", device_.compute_capability);
  if (Support support = has_no_tails(region_); !support) return support;
  for (const auto& [view, name] : {std::pair{&p.q, "q"}, {&p.k, "k"}, {&p.v, "v"}}) {
    if (!view->present()) return Support::no("{} is computed, not loaded", name);
    if (view->dtype != DType::f16 && view->dtype != DType::bf16)
      return Support::no("{} is {}, expected f16 or bf16", name, to_string(view->dtype));
    if (view->dtype != p.q.dtype)
      return Support::no("{} is {}, q is {}", name, to_string(view->dtype), to_string(p.q.dtype));
    for (const int axis : {2, 3})
      if (std::abs(view->strides[axis]) > std::numeric_limits<std::int32_t>::max())
        return Support::no("stride {} of axis {} of {} exceeds 32 bits", view->strides[axis], axis,
                           name);
  }
  if (region_.precision() != f32) return Support::no("computes in f64, expected f32");
  if (p.head_dim < 1 || p.head_dim > kMaxHeadDim)
    return Support::no("head dim {}, expected 1 to {}", p.head_dim, kMaxHeadDim);
  if (p.value_dim < 1 || p.value_dim > kMaxHeadDim)
    return Support::no("head dim {} of v, expected 1 to {}", p.value_dim, kMaxHeadDim);
  if (std::max(p.queries, p.keys) > kMaxLength)
    return Support::no("length {}, at most {} is supported", std::max(p.queries, p.keys),
                       kMaxLength);
  if (p.has_result(Forward::rng_dump)) return Support::no("the dropout mask is a result");
  if (p.has_fp8_scales()) return Support::no("fp8 scales or amax results");
  if (tiles().empty())
    return Support::no("no tile for head dims {} and {} fits {} bytes of shared memory", p.head_dim,
                       p.value_dim, device_.shared_bytes);
  constexpr std::int64_t kMaxHeads = 1 << 30, kSmallestTile = 64;
  if (p.batch * p.heads > kMaxHeads)
    return Support::no("{} heads, at most {} are supported", p.batch * p.heads, kMaxHeads);
  if (ceil_div(p.queries, kSmallestTile) > kMaxGridY)
    return Support::no("{} queries, at most {} are supported", p.queries,
                       kSmallestTile * kMaxGridY);
  return Support::yes();
}

std::int64_t AttentionDesigner::head_columns() const {
  return round_up(problem_.head_dim, kFragment);
}
std::int64_t AttentionDesigner::value_columns() const {
  return round_up(problem_.value_dim, kFragment);
}

std::int64_t AttentionDesigner::shared_bytes(const Tile& tile) const {
  const std::int64_t key_pitch = 2 * head_columns() + kRowPadding,
                     value_pitch = 2 * value_columns() + kRowPadding;
  return tile.m * key_pitch + tile.stages * tile.n * (key_pitch + value_pitch);
}

// As ptxas uses them, about: accumulators, fragments, state of the softmax, addresses.
std::int64_t AttentionDesigner::registers(const Tile& tile) const {
  const std::int64_t fragments = tile.warp_rows() / kFragment;
  const std::int64_t options =
      problem_.has_score_options() || problem_.op.dropout > 0 || problem_.has(Forward::block_mask);
  return fragments * (value_columns() / 2 + tile.n / 2 + 12) + 36 + 32 * options;
}

// Resident CTAs that registers and shared memory allow; __launch_bounds__ enforces it.
std::int64_t AttentionDesigner::blocks_per_sm(const Tile& tile) const {
  constexpr std::int64_t kRegistersPerSm = 65536, kReserved = 1024;
  const std::int64_t used = std::min(round_up(registers(tile), 8), kMaxRegisters + 1);
  const std::int64_t by_registers = kRegistersPerSm / (used * tile.threads()),
                     by_memory = device_.l1_bytes / (shared_bytes(tile) + kReserved);
  return std::max<std::int64_t>(std::min(by_registers, by_memory), 1);
}

std::int64_t AttentionDesigner::ctas(const Tile& tile) const {
  return problem_.batch * problem_.heads * ceil_div(problem_.queries, tile.m);
}

std::vector<AttentionDesigner::Tile> AttentionDesigner::tiles() const {
  // 32 rows per warp read keys and values from shared memory half as often as 16, but need twice
  // the accumulators.
  constexpr std::array<std::array<std::int64_t, 3>, 7> kTiles = {{{128, 128, 4},
                                                                  {128, 64, 4},
                                                                  {128, 48, 4},
                                                                  {128, 32, 4},
                                                                  {128, 64, 8},
                                                                  {64, 64, 4},
                                                                  {64, 32, 4}}};
  std::vector<Tile> result;
  for (const auto& [m, n, warps] : kTiles)
    for (const std::int64_t stages : {2, 1}) {
      const Tile tile{m, n, warps, stages};
      if (shared_bytes(tile) > device_.shared_bytes || registers(tile) > kMaxRegisters) continue;
      result.push_back(tile);
    }
  return result;
}

// Instructions per score besides products, counted in machine code or estimated.
double AttentionDesigner::score_instructions() const {
  constexpr double kSoftmax = 5, kScale = 1, kSoftCap = 9, kPerStep = 3, kLoad = 5, kAlibi = 3,
                   kPhilox = 35;
  const AttentionProblem& p = problem_;
  double total = kSoftmax + (scales_first() ? kScale : 0) + (p.op.soft_cap ? kSoftCap : 0) +
                 kPerStep * static_cast<double>(p.op.score_modifier.size()) +
                 (p.op.alibi ? kAlibi : 0) + (p.has(Forward::dropout_seed) ? kPhilox : 0);
  for (const Forward::In slot :
       {Forward::bias, Forward::score_input0, Forward::score_input1, Forward::score_input2,
        Forward::score_input3, Forward::block_mask, Forward::dropout_mask})
    if (p.has(slot)) total += kLoad;
  return total;
}

// An estimate, not measured: per block of keys the longest of tensor-core time, exponentials and
// shared-memory reads; CTAs are dealt to SMs without gaps but for the last wave.
double AttentionDesigner::seconds(const Tile& tile) const {
  // mma.sync reaches a part of the rate of wgmma and tcgen05.
  const int capability = device_.compute_capability;
  const double share = capability == 90 ? 0.6 : capability == 100 ? 0.25 : 0.85;
  constexpr double kExponentials = 16, kSharedBytes = 128, kIssues = 128;  // per SM and cycle
  constexpr double kBlockCycles = 300, kCtaCycles = 3000;  // barriers; first loads, epilogue
  const double lanes = capability == 80 ? 64 : 128;
  const double clock = device_.flops_f32 / (2 * lanes * device_.compute_units);
  const double flops_per_cycle =
      tensor_rate(device_, problem_.q.dtype) * share / (clock * device_.compute_units);
  const auto area = static_cast<double>(tile.m * tile.n);
  const auto columns = static_cast<double>(head_columns() + value_columns());
  const double products = 2 * area * columns / flops_per_cycle;
  const double exponentials = area / kExponentials, others = area * score_instructions() / kIssues;
  const double reads = 2 * columns * static_cast<double>(tile.n * tile.warps) +
                       2 * static_cast<double>(tile.m * head_columns());
  // With few warps the softmax of one overlaps with the products of another only in part.
  const auto warps = static_cast<double>(tile.warps * blocks_per_sm(tile));
  const double exposed = (exponentials + others) * std::min(1.0, 4 / warps);
  // Close to the limit of 255 registers ptxas moves values between registers.
  const double moves = registers(tile) > 250 && head_columns() > 64 ? 1.06 : 1.0;
  const double of_block =
      std::max({products * moves + exposed * 0.5, exponentials, reads / kSharedBytes}) +
      kBlockCycles * 4 / warps;
  const double visited = problem_.visited_blocks(tile.m, tile.n);
  const auto count = static_cast<double>(ctas(tile));
  const double cycles =
      visited * of_block + count * kCtaCycles / static_cast<double>(blocks_per_sm(tile));
  const auto units = static_cast<double>(device_.compute_units);
  const double longest = std::max(visited / std::max(count, 1.0), 1.0) * of_block + kCtaCycles;
  return (std::max(cycles / units, 0.5 * cycles / units + longest)) / clock;
}

Config AttentionDesigner::config_of(const Tile& tile) const {
  Config config;
  config.knobs = {
      {"block_m", tile.m}, {"block_n", tile.n}, {"warps", tile.warps}, {"stages", tile.stages}};
  // Operands that need element loads stall the products.
  const double slowdown = access_bytes() == 16 ? 1 : access_bytes() > 2 ? 1.5 : 8;
  config.cost.flops = std::max(region_.visible_flops(), 1.0);
  config.cost.bytes = region_.bytes();
  config.cost.bytes_fraction = 0.8;
  config.cost.flops_fraction = config.cost.flops / (device_.flops_f32 * seconds(tile) * slowdown);
  config.notes.runtime_compiled = true;
  config.notes.truncating_accumulation = true;
  return config;
}

std::vector<Config> AttentionDesigner::configs() const {
  std::vector<Config> result;
  for (const Tile& tile : tiles()) result.push_back(config_of(tile));
  sort_by_cost(result, device_, f32);
  return result;
}

}  // namespace ashlar::cuda
