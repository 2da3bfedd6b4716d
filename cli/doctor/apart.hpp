// Work in a child process: libraries that may be broken are opened there.
#pragma once

#include <functional>
#include <string>

namespace ashlar::cli {

struct Apart {
  bool ok = false;
  std::string text;  // what the work returned; else a sentence: "it was ended by signal 11 (...)"
};
// `work` returns a text or throws. It is ended after `seconds`.
Apart run_apart(const std::function<std::string()>& work, unsigned seconds);

}  // namespace ashlar::cli
