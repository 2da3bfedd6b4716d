// Lines for people on stderr, at the level that ASHLAR_LOG asks for.
#pragma once

#include <fmt/format.h>

#include "base/settings.hpp"

namespace ashlar {

inline bool log_enabled(LogLevel level) { return level <= settings().log_level; }

// Writes the text with "ashlar: " before its first line, in one piece also when threads write at
// once.
void log_text(std::string_view text);

// Arguments are formatted only when the level is on.
template <class... Args>
void log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  if (log_enabled(level)) log_text(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace ashlar
