// Designs the sm_80 GEMM kernel for a region: operand types, tiles, cost, launches.
#pragma once

#include <vector>

#include "cuda/engines/sm80/operand_text.hpp"
#include "cuda/engines/sm80/packed_region.hpp"
#include "cuda/launch/kernel_design.hpp"

namespace ashlar::cuda {

// Operand and accumulator types.
struct GemmTypes {
  DType a = bf16, b = bf16;     // in shared memory
  DType sum = f32;              // accumulator: f32, i32 or f64
  bool rounds_to_tf32 = false;  // f32 operands that tf32 does not represent exactly
};

// Sets `types`, or returns the reason why tensor cores do not support the operands.
Support gemm_types(const Region& region, const GemmProblem& problem, GemmTypes& types);

// The choices of a configuration.
struct WarpTile {
  std::int64_t m, n, bytes;  // CTA tile; bytes of K per stage
  std::int64_t stages, split;
  std::int64_t products;  // tf32 products per f32 product: 1 (rounded), 3 or 6 (split operands)

  // A warp has up to 64 x 64 accumulators; split f32 has three sets of 32 x 32.
  std::int64_t warp() const { return products > 1 ? 32 : 64; }
  std::int64_t warps_m() const { return m / warp() > 2 ? m / warp() : 2; }
  std::int64_t warps_n() const { return n / warp() > 2 ? n / warp() : 2; }
  std::int64_t threads() const { return 32 * warps_m() * warps_n(); }
};

// The knob of configurations with repacked operands; others do not have it.
inline constexpr const char* kPacked = "packed";

class GemmDesigner {
 public:
  // `packs`: the pre-passes of operands that the region loads from scratch.
  GemmDesigner(const Region& region, const DeviceProps& device,
               const PackedOperands& packs = none());
  Support support() const { return support_; }
  // Inputs of the anchor that are loaded element by element.
  std::vector<int> slots_by_element() const;
  // Those, and inputs that cp.async loads in vectors of less than 16 bytes.
  std::vector<int> slots_with_short_vectors() const;
  std::vector<Config> configs(std::string_view engine) const;
  KernelDesign design(const Graph& graph, const Config& config) const;

 private:
  Support check();
  std::vector<WarpTile> tiles() const;
  bool divides_evenly(const WarpTile& tile) const;
  bool fits_registers(const WarpTile& tile) const;
  std::int64_t blocks_per_sm(const WarpTile& tile) const;
  std::int64_t shared_bytes(const WarpTile& tile) const;
  std::int64_t tile_count(const WarpTile& tile, std::size_t first, std::size_t count) const;
  std::int64_t max_k() const;
  std::int64_t longest_sum() const;
  std::int64_t block_k(const WarpTile& tile) const;
  Config config_of(const WarpTile& tile, std::string_view engine) const;
  int result_vector() const;
  LaunchDesign launch(const Graph& graph, const WarpTile& tile, std::size_t first, int partial,
                      const std::map<int, int>& reservations) const;
  std::string print_epilogue(const Graph& graph, Arguments& arguments, bool is_split) const;
  std::string print_k_extent(const Graph& graph, VariantArguments& arguments) const;

  static constexpr std::size_t kVariantsPerLaunch = 8;
  static const PackedOperands& none();
  const Region& region_;
  const DeviceProps& device_;
  const PackedOperands& packs_;
  GemmProblem problem_;
  GemmTypes types_;
  Support support_;
  std::vector<OperandText> operands_;  // A, B
};

}  // namespace ashlar::cuda
