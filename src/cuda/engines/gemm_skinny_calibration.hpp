// Constants of the estimates of products with few rows (gemm_skinny_cost.cpp), which
// tools/fit_skinny fits to recorded timings.
#pragma once

#include <string>

namespace ashlar::cuda {

// What all walks have, with values of their own.
struct SkinnyCosts {
  double bandwidth_fraction = 0;               // share of the speed that is on its label
  double max_issued = 0, issued_per_warp = 0;  // instructions per clock, of a multiprocessor
  double start = 0;                            // us: launch, first bytes, last results
  double pass = 0;                             // us of each further group of rows of a block
  double cluster = 0;                          // us for the barriers of a group of rows
};

struct SkinnyCalibration {
  double product_clocks = 0;  // of a multiprocessor, for m16n8k16
  double load_x = 0;          // instructions to read 8 depths of 8 rows of x

  // Where the copy engine brings the weights by rows.
  struct Rows : SkinnyCosts {
    double copy_clocks = 0, copy_bytes_per_clock = 0;  // of a row
    double chunk_clocks = 0;                           // to wait, and to meet
    double per_copy = 0, chunk = 0;                    // instructions of a warp
    double shared_bytes_per_clock = 0;
  } rows;

  // Where warpgroups multiply.
  struct Groups : SkinnyCosts {
    double part = 0;             // instructions of a warp for up to 4 slices: addresses, waits
    double chunk_clocks = 0;     // to wait, and for the last products
    double unhidden = 0;         // of instructions that products wait for: registers
    double last = 0;             // of a chunk, whose bytes come last
    double bytes_per_clock = 0;  // that come to a multiprocessor
    double repack_launch = 0;    // us, of the launch that puts x in order
    // Clocks of a warp of a block that does so with 128 depths of 8 rows, or makes digits of them,
    // while others multiply; and how often nobody does meanwhile.
    double repack_clocks = 0, limb_clocks = 0, first = 0;
    // Where multiprocessors have different shares: of so much more, to this power. us: shares that
    // are even leave no multiprocessors to the next launch, which would begin there.
    double uneven = 0, even = 0;
  } groups;

  // Where weights go straight to registers.
  struct Direct : SkinnyCosts {
    double of_step = 0;                 // instructions of a packet: addresses, the walk
    double of_short = 0, of_scale = 0;  // and where weights have 16 bits; where they have scales
    double l1_bytes_per_clock = 0;      // x comes through it
  } direct;
};

// use(name, constant) of each of them.
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
  const auto of_direct = [](const char* name) { return std::string("direct.") + name; };
  visit_costs(of_direct, all.direct);
  use(of_direct("of_step"), all.direct.of_step);
  use(of_direct("of_short"), all.direct.of_short);
  use(of_direct("of_scale"), all.direct.of_scale);
  use(of_direct("l1_bytes_per_clock"), all.direct.l1_bytes_per_clock);
}

const SkinnyCalibration& skinny_calibration();

}  // namespace ashlar::cuda
