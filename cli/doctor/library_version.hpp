// Which version a library file is, and whose.
#pragma once

#include <string>

namespace ashlar::cli {

struct LibraryVersion {
  std::string version;  // "9.19.0"; empty: not known
  std::string maker;    // of libcudnn: "NVIDIA" or "Ashlar"
  std::string trouble;  // why it cannot be opened
};
// `library` is "libcudnn" and so on. What its name does not tell is asked of the library itself, in
// a child process.
LibraryVersion version_of(const std::string& library, const std::string& file);

// "13.0.88" for ".../libnvrtc.so.13.0.88"; empty where the name has no version, or only the number
// that all compatible ones share.
std::string version_in_name(const std::string& file);

}  // namespace ashlar::cli
