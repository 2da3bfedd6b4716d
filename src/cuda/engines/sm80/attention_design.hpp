// Designs the sm_80 attention kernel for a region: tiles, cost, launch.
#pragma once

#include <vector>

#include "cuda/engines/attention_problem.hpp"
#include "cuda/launch/kernel_design.hpp"

namespace ashlar::cuda {

class AttentionDesigner {
 public:
  // The region's anchor is an AttentionForward; both outlive the designer.
  AttentionDesigner(const Region& region, const DeviceProps& device);
  Support support() const;
  std::vector<Config> configs() const;
  KernelDesign design(const Graph& graph, const Config& config) const;

 private:
  // The choices of a configuration.
  struct Tile {
    std::int64_t m, n, warps, stages;
    std::int64_t threads() const { return 32 * warps; }
    std::int64_t warp_rows() const { return m / warps; }
  };
  std::vector<Tile> tiles() const;
  std::int64_t head_columns() const;  // D in whole fragments
  std::int64_t value_columns() const;
  std::int64_t shared_bytes(const Tile& tile) const;
  std::int64_t registers(const Tile& tile) const;
  std::int64_t blocks_per_sm(const Tile& tile) const;
  std::int64_t ctas(const Tile& tile) const;
  std::int64_t section_heads() const;
  double score_instructions() const;
  double seconds(const Tile& tile) const;
  Config config_of(const Tile& tile) const;
  // Bytes per copy of Q, K and V; 2: any element stride.
  std::int64_t access_bytes() const;
  std::int64_t result_vector() const;
  bool scales_first() const;
  bool loads_pairs() const;
  std::string print_scores(const Graph& graph, Arguments& arguments) const;
  std::string print_operands(const Graph& graph, std::int64_t threads, Arguments& arguments) const;

  const Region& region_;
  const DeviceProps& device_;
  const AttentionProblem problem_;
};

}  // namespace ashlar::cuda
