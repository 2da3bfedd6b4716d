// Cost model of the skinny GEMM: the larger of the memory time and the time of the busiest SM, from
// counts of instructions, MMAs and bytes.
#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "base/ceil_div.hpp"
#include "cuda/engines/gemm_skinny_calibration.hpp"
#include "cuda/engines/gemm_skinny_shape.hpp"
#include "cuda/engines/tile_cost.hpp"

namespace ashlar::cuda {

namespace {

using Layout = SkinnyLayout;
using Shape = SkinnyShape;

// --- constants; the fitted ones are in gemm_skinny_calibration.inc
constexpr double kClock = 1.75e9;     // Hz
constexpr double kMicro = 1e-6;       // seconds
constexpr double kEnough = 32 << 10;  // bytes in flight per SM that saturate memory
constexpr double kNorm = 8;           // of the p-norm that combines times, a smooth maximum
constexpr std::int64_t kPacketBytes = 16, kStepBytes = 4 * kPacketBytes;
constexpr double kWarpBytes = 32 * kPacketBytes;  // of one packet per lane

using Costs = SkinnyCosts;
constexpr Costs kCpAsync = {.bandwidth_fraction = 0.865,
                            .max_issued = 1.49,
                            .issued_per_warp = 0.34,
                            .start = 7.0,
                            .pass = 0.1,
                            .cluster = 2.45};

const SkinnyCalibration& fitted() { return skinny_calibration(); }

double as_double(std::int64_t count) { return static_cast<double>(count); }

// Units of 8 k per packet, and tiles of 8 rows of x.
double units(const Shape& shape) { return as_double(kPacketBytes * 8 / shape.bits()) / 8; }
double tiles_m(const Shape& shape) { return as_double(ceil_div(shape.m, 8)); }
bool is_narrow(const Shape& shape) { return shape.bits() == 4; }
bool is_scaled(const Shape& shape) { return shape.scale_block > 0; }
double scale_bytes(const Shape& shape) {
  return is_scaled(shape) ? bit_width(shape.scales().dtype) / 8 : 0;
}

// Instructions that convert a packet to packed 16-bit pairs.
double conversion(const Shape& shape, bool keeps_offset) {
  const DType dtype = shape.weights.dtype;
  if (bit_width(dtype) == 16) return 5;  // moves, and stalls because there are so few
  if (dtype == e4m3) return shape.type == f16 ? 8 : 33;
  if (dtype == e5m2) return 12;
  if (bit_width(dtype) == 8) return 28;
  return dtype == e2m1 ? 76 : keeps_offset ? 32 : 46;
}
// The same in the warpgroup kernel, which multiplies pairs by their scales.
double warpgroup_conversion(const Shape& shape, const Layout& layout) {
  constexpr double kToLimbs = 12, kToSmall = 36, kScales = 16;
  if (layout.has_limbs()) return kToLimbs;
  if (shape.has_small_integers() && shape.type == bf16) return kToSmall;
  return conversion(shape, false) + (is_scaled(shape) ? kScales : 0);
}
// Instructions to read, convert and multiply a packet.
double of_packet(const Shape& shape, bool keeps_offset) {
  return conversion(shape, keeps_offset) + 1 + units(shape) * tiles_m(shape);
}
// Instructions to read x for a step, and to permute it for 4-bit weights.
double of_x(const Shape& shape) {
  return units(shape) * tiles_m(shape) * (fitted().load_x + (is_narrow(shape) ? 4 : 0));
}

// CTAs of the busiest SM: in total, and resident at once.
struct SmLoad {
  double all, at_once;
  SmLoad(const Shape& shape, const Layout& layout, const DeviceProps& device) {
    const std::int64_t grid = layout.grid(shape);
    all = as_double(std::max(
        ceil_div(grid, std::int64_t{device.compute_units}),
        ceil_div(grid / layout.split, SkinnyLayout::clusters_at_once(device, layout.split))));
    at_once = std::min(as_double(ceil_div(grid, std::int64_t{device.compute_units})),
                       as_double(layout.blocks));
  }
};

double issue_clocks(const Costs& costs, double instructions, double warps) {
  return instructions / std::min(costs.max_issued, costs.issued_per_warp * warps);
}

double smooth_max(std::initializer_list<double> parts) {
  const double largest = std::max(parts);
  double sum = 0;
  for (const double part : parts) sum += std::pow(part / largest, kNorm);
  return largest * std::pow(sum, 1 / kNorm);
}
double fixed_seconds(const Costs& costs, const Layout& layout) {
  const double passes = as_double(layout.passes);
  return kMicro * (costs.start + (passes - 1) * costs.pass +
                   (layout.split > 1 ? passes * costs.cluster : 0));
}

// Time to stream all weights in chunks, with all stages but one of a CTA in flight.
double chunk_memory_seconds(const Costs& costs, const Shape& shape, const Layout& layout,
                            const DeviceProps& device, double blocks_at_once) {
  const auto units = as_double(device.compute_units);
  const double on_the_way =
      std::min(as_double(layout.grid(shape)), units * blocks_at_once) / units *
      as_double(std::max<std::int64_t>(layout.steps - 1, 1) * layout.rows(shape) * layout.chunk);
  const double weights = as_double(shape.n * shape.batches * shape.row_bytes());
  return weights / (device.bytes_per_second * costs.bandwidth_fraction *
                    std::sqrt(std::min(1.0, on_the_way / kEnough)));
}

// The TMA kernel.
double tma_seconds(const Shape& shape, const Layout& layout, const DeviceProps& device) {
  const SkinnyCalibration::Rows& own = fitted().rows;
  const SmLoad sm_load(shape, layout, device);
  const auto rows = as_double(layout.rows(shape)), chunk = as_double(layout.chunk);
  const auto m = as_double(shape.m), warps = as_double(layout.warps_n * layout.warps_k);
  const double chunk_k = chunk * 8 / shape.bits();
  const double groups = is_scaled(shape) ? chunk_k / as_double(shape.scale_block) : 0;
  const double steps = chunk / as_double(kStepBytes * layout.warps_k);  // of a warp
  const double packets = as_double(2 * layout.tiles);                   // of a step
  const double of_unit = units(shape) * tiles_m(shape);
  const bool has_offset = shape.keeps_offset();

  const double memory = chunk_memory_seconds(own, shape, layout, device, sm_load.at_once);

  // Clocks per chunk. Scales multiply accumulators, after the offset's products are subtracted.
  const double of_scales = is_scaled(shape) ? 2 * tiles_m(shape) * (has_offset ? 2 : 1) + 3 : 0;
  const double step = packets * (of_packet(shape, has_offset) + of_scales) + of_x(shape) +
                      (has_offset ? 2 * of_unit : 0);
  const double copied = rows + m + groups;
  const double instructions = steps * step * warps + own.chunk * warps + own.per_copy * copied;
  const double issue =
      issue_clocks(own, instructions, warps * sm_load.at_once) + own.chunk_clocks / sm_load.at_once;
  const double products =
      steps * warps * of_unit * (packets + (has_offset ? 2 : 0)) * fitted().product_clocks;
  const bool meets_in_banks = is_narrow(shape) && m <= 8;  // see kSwapsHalves
  const double loads_of_x = of_unit / packets * (meets_in_banks ? 2 : 1);
  const double shared = rows * chunk * (2 + loads_of_x) / own.shared_bytes_per_clock;
  const double copies = copied * own.copy_clocks +
                        (rows * chunk + m * chunk_k * 2 + groups * rows * scale_bytes(shape)) /
                            own.copy_bytes_per_clock;
  const double to_seconds =
      sm_load.all * as_double(layout.block_rounds(shape) * layout.passes) / kClock;
  return smooth_max({memory, issue * to_seconds, products * to_seconds, shared * to_seconds,
                     copies * to_seconds}) +
         fixed_seconds(own, layout);
}

// The warpgroup kernel.
double warpgroup_seconds(const Shape& shape, const Layout& layout, const DeviceProps& device) {
  constexpr double kLimbInstructions = 6;  // instructions to combine three limbs
  constexpr double kOfScales = 10;         // for the scales of a piece
  constexpr double kLeastClocks = 13;      // of a wgmma of 64 rows and 8 or 16 columns
  const SkinnyCalibration::Groups& own = fitted().groups;
  const SmLoad sm_load(shape, layout, device);
  const auto rows = as_double(layout.rows_of_warps(shape)), chunk = as_double(layout.chunk);
  const auto columns = as_double(shape.columns());
  const auto warps = as_double(layout.warps_n * layout.warps_k);
  const double slices = units(shape) * (layout.has_limbs() ? 1 : 2);  // of a piece
  const double pieces = rows / 16 * chunk / as_double(kStepBytes);    // of all warps

  const double share = sm_load.all * as_double(layout.passes * layout.rows(shape)) /
                       as_double(layout.split * shape.n) * device.compute_units;
  const double memory = chunk_memory_seconds(own, shape, layout, device, sm_load.at_once) *
                        std::pow(std::max(share, 1.0), own.uneven);
  const double of_sums = layout.has_limbs() ? columns / 2 * kLimbInstructions : 0;
  const double piece = 2 * (warpgroup_conversion(shape, layout) + 1) + slices +
                       own.part * std::ceil(slices / 4) +
                       (is_scaled(shape) ? of_sums + kOfScales : 0);
  const double issue = issue_clocks(own, pieces * piece, warps * sm_load.at_once) +
                       own.chunk_clocks / sm_load.at_once;
  const double product = std::max(columns * as_double(layout.planes()) / 2, kLeastClocks);
  const double products = pieces / 4 * slices * product + own.unhidden * issue;
  const double copies = as_double(layout.warpgroup_stage_bytes(shape)) / own.bytes_per_clock;
  const double to_seconds =
      sm_load.all * as_double(layout.block_rounds(shape) * layout.passes) / kClock;
  const auto repack_clocks = [&](std::int64_t chunks) {
    if (!layout.repacks_in_cta()) return 0.0;
    return as_double(layout.repack_turns(shape, chunks)) *
           (layout.has_limbs() ? own.limb_clocks : own.repack_clocks);
  };
  // A repack warp has the same work items of a stage at every fill.
  const double order = repack_clocks(layout.steps) / as_double(layout.steps);
  return smooth_max({memory, issue * to_seconds, products * to_seconds, copies * to_seconds,
                     order * to_seconds}) +
         fixed_seconds(own, layout) + (own.last * issue + own.first * repack_clocks(1)) / kClock +
         kMicro * ((layout.repacks_in_cta() ? 0 : own.repack_launch) +
                   (layout.block_rows > 0 ? own.even : 0));
}

// The cp.async kernel: too many rows streamed at once lose bandwidth, and x is copied as well.
double cp_async_seconds(const Shape& shape, const Layout& layout, const DeviceProps& device) {
  constexpr double kRowsAtOnce = 8192, kLossPerDoubling = 0.23;
  constexpr double kMaxOfOne = 1.15;        // of its share of the bandwidth that one SM can reach
  constexpr double kStep = 8, kScale = 16;  // warp instructions: loop, per step; scales, per packet
  constexpr double kCopyX = 78;             // instructions per 512 bytes
  constexpr double kVector = 20;            // instructions per packet by FMA
  const SmLoad sm_load(shape, layout, device);
  const auto all = as_double(device.compute_units), grid = as_double(layout.grid(shape));
  const auto warps = as_double(layout.warps_n * layout.warps_k);
  const auto step_bytes = as_double(layout.step_bytes(shape));
  const double on_the_way = sm_load.at_once * as_double(layout.steps - 1) * step_bytes;
  const double streams = std::min(grid, all * sm_load.at_once) * as_double(layout.rows(shape));
  const double k_major = shape.k_major ? as_double(layout.warps_k) : 4;
  const double doublings = std::max(0.0, std::log2(streams / kRowsAtOnce));
  const double speed = device.bytes_per_second * kCpAsync.bandwidth_fraction *
                       std::min(1.0, on_the_way / kEnough) *
                       std::max(0.3, 1 - kLossPerDoubling * doublings / k_major);
  const double weights = as_double(shape.n * shape.k * shape.batches) * shape.bits() / 8;
  const double steps = as_double(layout.block_rounds(shape) * layout.passes);  // per CTA

  const double packets = step_bytes / (warps * 32 * as_double(shape.packet_bytes()));
  const double x_bytes =
      as_double(layout.block_rounds(shape) * layout.warps_k * layout.step_k(shape) * shape.m) *
      bit_width(shape.type) / 8 * (layout.buffers_x(shape) > 1 ? as_double(layout.passes) : 1);
  const double packet =
      (shape.uses_mma() ? of_packet(shape, false) : kVector) + (is_scaled(shape) ? kScale : 0);
  const double step = kStep + packets * packet + (shape.uses_mma() ? of_x(shape) : 0);
  const double instructions = steps * step * warps + kCopyX * x_bytes / kWarpBytes;
  const double issue =
      sm_load.all * issue_clocks(kCpAsync, instructions, warps * sm_load.at_once) / kClock;
  const double busiest = sm_load.all * steps * step_bytes / (speed / all * kMaxOfOne);
  const double products = shape.uses_mma() ? sm_load.all * steps * warps * packets * units(shape) *
                                                 tiles_m(shape) * fitted().product_clocks / kClock
                                           : 0;
  return smooth_max({weights / speed, busiest, issue, products}) + fixed_seconds(kCpAsync, layout);
}

}  // namespace

std::int64_t SkinnyLayout::clusters_at_once(const DeviceProps& device, std::int64_t split) {
  return std::max<std::int64_t>(cluster_sms(device, static_cast<int>(split)) / split, 1);
}

double SkinnyLayout::seconds(const Shape& shape, const DeviceProps& device) const {
  if (helpers > 0) return warpgroup_seconds(shape, *this, device);
  if (chunk > 0) return tma_seconds(shape, *this, device);
  return cp_async_seconds(shape, *this, device);
}

}  // namespace ashlar::cuda
