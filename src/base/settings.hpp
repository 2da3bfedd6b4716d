// What the environment asks of the library, read once.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ashlar {

// Each level includes those before it. `explain` prints the explanation of every plan compiled.
enum class LogLevel : std::uint8_t { off, error, info, explain, debug };

// Sets `level` and returns true when `name` is one of the levels.
bool parse_log_level(std::string_view name, LogLevel& level);

struct Settings {
  LogLevel log_level = LogLevel::error;  // ASHLAR_LOG
  std::string target = {};               // ASHLAR_TARGET, see cpu/target.hpp
  std::string nvrtc = {};                // ASHLAR_NVRTC, see cuda/jit/nvrtc.hpp
  std::string cublaslt = {};             // ASHLAR_CUBLASLT, see cuda/cublaslt/
  std::vector<std::string> bundles =
      {};                    // ASHLAR_BUNDLE, a list with colons, see cuda/jit/bundle.hpp
  std::string kernels = {};  // ASHLAR_KERNELS, a folder, see cuda/jit/kernel_text.hpp
  bool cuda_sync = false;    // ASHLAR_CUDA_SYNC: waits for every kernel, to name the one that fails
  // ASHLAR_CACHE, else ashlar under XDG_CACHE_HOME or ~/.cache; empty where none is known.
  std::string cache_directory = {};
  // Where CUDA's own variables say that it is: CUDA_HOME, CUDA_PATH, VIRTUAL_ENV, CONDA_PREFIX.
  std::vector<std::string> cuda_roots = {}, python_roots = {};
};

// Read on first use; later changes of the environment have no effect.
const Settings& settings();

}  // namespace ashlar
