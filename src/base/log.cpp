// Log output on stderr.
#include "base/log.hpp"

#include <cstdio>
#include <string>

namespace ashlar {

void log_text(std::string_view text) {
  std::string line = "ashlar: ";
  line += text;
  if (!line.ends_with('\n')) line += '\n';
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace ashlar
