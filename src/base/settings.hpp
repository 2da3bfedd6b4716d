// Settings from environment variables, read once.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ashlar {

// Each level includes the levels before it. `explain` logs the explanation of every compiled plan.
enum class LogLevel : std::uint8_t { off, error, info, explain, debug };

// Sets `level` and returns true if `name` is one of the levels.
bool parse_log_level(std::string_view name, LogLevel& level);

struct Settings {
  LogLevel log_level = LogLevel::error;   // ASHLAR_LOG
  std::string target = {};                // ASHLAR_TARGET, see cpu/target.hpp
  std::string nvrtc = {};                 // ASHLAR_NVRTC, see cuda/jit/nvrtc.hpp
  std::string cublaslt = {};              // ASHLAR_CUBLASLT, see cuda/cublaslt/
  std::vector<std::string> bundles = {};  // ASHLAR_BUNDLE, colon-separated, see cuda/jit/bundle.hpp
  std::string kernels = {};               // ASHLAR_KERNELS, directory, see cuda/jit/kernel_text.hpp
  bool cuda_sync = false;  // ASHLAR_CUDA_SYNC: synchronise after every kernel to locate errors
  // ASHLAR_CACHE, else ashlar under XDG_CACHE_HOME or ~/.cache; empty if none is set.
  std::string cache_directory = {};
  // Locations of CUDA from CUDA_HOME and CUDA_PATH, and from VIRTUAL_ENV and CONDA_PREFIX.
  std::vector<std::string> cuda_roots = {}, python_roots = {};
};

// Read on first use; later changes of the environment have no effect.
const Settings& settings();

}  // namespace ashlar
