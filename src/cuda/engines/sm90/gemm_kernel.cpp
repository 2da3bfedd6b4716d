#include "cuda/engines/sm90/gemm_kernel.hpp"

#include "cuda/jit/kernel_text.hpp"
#include "cuda/text/spec_text.hpp"

namespace ashlar::cuda {

void GemmKernel::set(LaunchDesign& launch) const {
  const bool has_windows = mainloop != GemmMainloop::k_blocks;
  std::vector<std::string_view> all = files;
  all.emplace_back("sm90/warpgroups.cuh");
  if (has_windows) all.emplace_back("sm90/conv_pipelines.cuh");
  if (tails != nullptr) tails->add_files(all, tail_place);
  if (!has_windows) all.emplace_back("sm90/cluster_reduce.cuh");
  if (tile.streams) all.emplace_back("sm90/stream_k_fixup.cuh");
  if (mainloop != GemmMainloop::packed_groups) all.emplace_back("sm90/residual_prefetch.cuh");
  all.emplace_back(mainloop == GemmMainloop::packed_groups  ? "sm90/mainloop_groups.cuh"
                   : mainloop == GemmMainloop::halo_windows ? "sm90/mainloop_halo.cuh"
                                                            : "sm90/mainloop.cuh");
  const std::string head =
      register_types(precision, programs) + gemm_constants(tile, form, stages) + constants +
      (tails != nullptr ? tails->text() : "") + launch.arguments.struct_text() + printed;
  launch.source = {name, assemble(all, head)};
  launch.function = "gemm";
  launch.threads = static_cast<unsigned>((tile.consumers + tile.producers) * 128);
  launch.shared_bytes = shared_bytes(tile, stages);
}

void note_precision(DType operands, bool tf32, Config& config) {
  config.notes.runtime_compiled = true;
  config.notes.tf32 = tf32;
  config.notes.truncating_accumulation = operands != DType::i8;
  config.notes.reduced_precision_accumulation = promotes(operands);
}

}  // namespace ashlar::cuda
