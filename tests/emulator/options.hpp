// What the environment asks of the emulator: EMULATED_CUDA is a list like "devices=0,memory=1000".
#pragma once

#include <string>

namespace emulated {

struct Options {
  int devices = 1;
  int version = 13000;  // of the driver
  int start_error = 0;  // what cuInit gives
  int capability = 90;
  int sm_count = 132;
  long long memory = 1ll << 34;  // bytes of a device; more cannot be allocated
  bool reverse = false;          // threads and blocks take turns from the last one on
  bool aligned = false;          // kernels compiled now stop at addresses that are not aligned
  std::string compiles = {};     // a file: every compilation appends a line, its kernel's name
  std::string keep = {};         // a folder in which the texts that are compiled stay
};
// Read on first use. Ends the process on a word that is none of these.
const Options& options();

}  // namespace emulated
