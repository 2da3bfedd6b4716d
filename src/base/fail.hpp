// Throws ashlar::Error with a formatted message.
#pragma once

#include <fmt/format.h>

#include <ashlar/error.hpp>

namespace ashlar {

template <class... Args>
[[noreturn]] void fail(ErrorCode code, fmt::format_string<Args...> sentence, Args&&... args) {
  throw Error(code, fmt::format(sentence, std::forward<Args>(args)...));
}

}  // namespace ashlar
