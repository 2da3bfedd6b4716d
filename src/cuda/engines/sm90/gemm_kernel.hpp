// The launch of a warp-specialised GEMM of kernels/sm90, for every engine that has one: each adds a
// tile scheduler, a loader and an epilogue to one of the mainloops.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cuda/engines/gemm_tails.hpp"
#include "cuda/engines/sm90/gemm_tile.hpp"
#include "cuda/launch/kernel_design.hpp"
#include "plan/pointwise_program.hpp"

namespace ashlar::cuda {

enum class GemmMainloop : std::uint8_t {
  k_blocks,      // sm90/mainloop.cuh: A and B in every stage
  halo_windows,  // sm90/mainloop_halo.cuh: pixels are loaded once for all taps
  packed_groups  // sm90/mainloop_groups.cuh: the same for groups packed into one tile
};

struct GemmKernel {
  std::string name = {};  // of the text
  DType precision = f32;
  std::vector<const PointwiseProgram*> programs = {};  // whose indices `Index` can hold
  GemmTile tile = {};
  GemmForm form = {};
  int stages = 1;
  std::string constants = {};                // besides those of tile and form
  std::string printed = {};                  // device functions, which follow struct Args
  std::vector<std::string_view> files = {};  // epilogue, tile scheduler, loader, prologues
  GemmMainloop mainloop = GemmMainloop::k_blocks;
  const GemmTails* tails = nullptr;  // null: none
  std::string_view tail_place = {};  // the file that defines tail_place

  // Sets text, function, threads and the shared memory of GemmMainloop::k_blocks. The arguments of
  // the launch are complete, except those of tails.
  void set(LaunchDesign& launch) const;
};

// What a result's precision owes to operands multiplied by tensor cores. `tf32`: f32 operands are
// rounded to tf32.
void note_precision(DType operands, bool tf32, Config& config);

}  // namespace ashlar::cuda
