#include "cuda/engines/sm90/producer_cost.hpp"

#include <algorithm>

namespace ashlar::cuda {

namespace {

constexpr double kDequantizeShare = 0.8;  // of the memory bandwidth, by a kernel that dequantises

// Estimated clocks of a producer warpgroup for its share of an operand tile of a stage.
double clocks_of(const MatrixOperand& factor, const GemmTile& tile, int rows) {
  // A program waits for its loads, then spends some instructions per 16-byte piece.
  constexpr double kLatency = 800, kPerPiece = 45;
  // Per 16-byte packet: 62 to 115 instructions to convert it and 20 to copy it and its scale; the
  // warp issues in two of three clocks.
  constexpr double kPerPacket = 80, kPerPair = 9;
  // A zero point is copied like a scale, and adds one instruction to some 6 per pair.
  constexpr double kPerZero = 20, kShiftPerPair = 1.5;
  if (!factor.computed) return 0;
  if (const DequantizedOperand* converted = factor.converted()) {
    const double shift = converted->zeros.present() ? kShiftPerPair : 0;
    return converted->packets(rows, block_k(factor.math)) *
           (kPerPacket + kPerZero * converted->packet_zeros() +
            (kPerPair + shift) * converted->packet_elements() / 2);
  }
  return kLatency + kPerPiece * rows * tile.depth_bytes / 16 / 128;
}

// The region with the dequantised weights read from memory.
Region after_dequantization(const Region& region) {
  Region result = region;
  for (std::size_t i = 0; i < result.prologues.size(); ++i)
    if (result.prologues[i].has_blocks())
      result.prologues[i] = plain_load(region.anchor->inputs[i]);
  return result;
}

}  // namespace

int raw_steps(const MatrixOperand& a, const MatrixOperand& b, const GemmTile& tile, int& bytes) {
  constexpr int kEnough = 32 << 10, kMost = 8;
  const int depth = block_k(a.math);
  int each = 0;
  if (const DequantizedOperand* converted = a.converted())
    each += converted->step_bytes(tile.m, depth);
  if (const DequantizedOperand* converted = b.converted())
    each += converted->step_bytes(tile.n, depth);
  each *= tile.producers;
  const int steps = each == 0 ? 1 : std::clamp(kEnough / each, 2, kMost);
  bytes = steps * each;
  return steps;
}

double producer_efficiency(const MatrixOperand& a, const MatrixOperand& b, const GemmTile& tile) {
  constexpr double kMost = 0.95;
  if (!a.computed && !b.computed) return 1;
  const double products =
      2.0 * tile.m * tile.n * tile.depth_bytes / 8192;  // 8192 per clock and byte
  const double clocks = clocks_of(a, tile, tile.m) + clocks_of(b, tile, tile.n);
  return std::min(kMost, products * tile.producers / clocks);
}

double bytes_of(const PointwiseProgram& prologue, const PointwiseProgram& epilogue) {
  Region region;
  region.prologues = {prologue};
  region.epilogue = epilogue;
  return region.bytes();
}

Support is_worth_dequantizing(const Region& region, const CudaEngine& engine,
                              const DeviceProps& device) {
  const Region after = after_dequantization(region);
  double moved = 0;
  for (std::size_t i = 0; i < region.prologues.size(); ++i)
    if (region.prologues[i].has_blocks())
      moved += bytes_of(region.prologues[i]) + bytes_of(after.prologues[i]);
  if (moved == 0) return Support::yes();
  const auto seconds = [&](const Region& of) {
    return engine.configs(of, device).at(0).cost.seconds(device, of.precision());
  };
  const double here = seconds(region), apart = seconds(after) + device.launch_seconds +
                                               moved / (kDequantizeShare * device.bytes_per_second);
  if (here <= apart) return Support::yes();
  return Support::no("dequantising in a separate kernel is faster: {:.0f} us, fused {:.0f} us",
                     apart * 1e6, here * 1e6);
}

}  // namespace ashlar::cuda
