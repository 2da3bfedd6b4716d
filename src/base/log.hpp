// Log lines on stderr, at the level set by ASHLAR_LOG.
#pragma once

#include <fmt/format.h>

#include "base/settings.hpp"

namespace ashlar {

inline bool log_enabled(LogLevel level) { return level <= settings().log_level; }

// Writes the text with the prefix "ashlar: ", in a single write: lines of concurrent threads do not
// interleave.
void log_text(std::string_view text);

// Formats its arguments only if the level is enabled.
template <class... Args>
void log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  if (log_enabled(level)) log_text(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace ashlar
