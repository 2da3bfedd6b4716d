// Constants of the cost model of the skinny GEMM (gemm_skinny_cost.cpp), which tools/fit_skinny
// fits to recorded timings.
#pragma once

#include <string>

namespace ashlar::cuda {

// Constants that every kernel variant has.
struct SkinnyCosts {
  double bandwidth_fraction = 0;               // achieved share of peak bandwidth
  double max_issued = 0, issued_per_warp = 0;  // instructions per clock: SM maximum, per warp
  double start = 0;                            // us: launch, first bytes, last results
  double pass = 0;                             // us per further work unit of a CTA
  double cluster = 0;                          // us per unit for cluster barriers
};

struct SkinnyCalibration {
  double product_clocks = 0;  // SM clocks per m16n8k16
  double load_x = 0;          // instructions to read 8 k of 8 rows of x

  // The TMA kernel (gemm_skinny_tma.cuh).
  struct Rows : SkinnyCosts {
    double copy_clocks = 0, copy_bytes_per_clock = 0;  // per bulk copy of a row
    double chunk_clocks = 0;                           // barrier waits per chunk
    double per_copy = 0, chunk = 0;                    // warp instructions per copy, per chunk
    double shared_bytes_per_clock = 0;
  } rows;

  // The warpgroup kernel (gemm_skinny_warpgroup.cuh).
  struct Groups : SkinnyCosts {
    double part = 0;             // warp instructions per up to 4 slices: addresses, waits
    double chunk_clocks = 0;     // barrier waits and the drain of wgmma per chunk
    double unhidden = 0;         // share of issue time that wgmma does not hide (registers)
    double last = 0;             // exposed share of the last chunk
    double bytes_per_clock = 0;  // TMA throughput per SM
    double repack_launch = 0;    // us of the repack pre-pass
    // Clocks of a repack warp per 128 k of 8 rows, to repack or to decompose into limbs while other
    // warps multiply; and the exposed share at the start, when none multiplies.
    double repack_clocks = 0, limb_clocks = 0, first = 0;
    // Exponent on the load imbalance between SMs. us: with an even load no SM is free early for the
    // next launch.
    double uneven = 0, even = 0;
  } groups;
};

// Calls use(name, constant) for each constant.
template <class Calibration, class Use>
void visit_constants(Calibration& all, const Use& use) {
  const auto visit_costs = [&](const auto& name, auto& costs) {
    use(name("bandwidth_fraction"), costs.bandwidth_fraction);
    use(name("max_issued"), costs.max_issued);
    use(name("issued_per_warp"), costs.issued_per_warp);
    use(name("start"), costs.start);
    use(name("pass"), costs.pass);
    use(name("cluster"), costs.cluster);
  };
  use(std::string("product_clocks"), all.product_clocks);
  use(std::string("load_x"), all.load_x);
  const auto of_rows = [](const char* name) { return std::string("rows.") + name; };
  visit_costs(of_rows, all.rows);
  use(of_rows("copy_clocks"), all.rows.copy_clocks);
  use(of_rows("copy_bytes_per_clock"), all.rows.copy_bytes_per_clock);
  use(of_rows("chunk_clocks"), all.rows.chunk_clocks);
  use(of_rows("per_copy"), all.rows.per_copy);
  use(of_rows("chunk"), all.rows.chunk);
  use(of_rows("shared_bytes_per_clock"), all.rows.shared_bytes_per_clock);
  const auto of_groups = [](const char* name) { return std::string("groups.") + name; };
  visit_costs(of_groups, all.groups);
  use(of_groups("part"), all.groups.part);
  use(of_groups("chunk_clocks"), all.groups.chunk_clocks);
  use(of_groups("unhidden"), all.groups.unhidden);
  use(of_groups("last"), all.groups.last);
  use(of_groups("bytes_per_clock"), all.groups.bytes_per_clock);
  use(of_groups("repack_launch"), all.groups.repack_launch);
  use(of_groups("repack_clocks"), all.groups.repack_clocks);
  use(of_groups("limb_clocks"), all.groups.limb_clocks);
  use(of_groups("first"), all.groups.first);
  use(of_groups("uneven"), all.groups.uneven);
  use(of_groups("even"), all.groups.even);
}

const SkinnyCalibration& skinny_calibration();

}  // namespace ashlar::cuda
