#include "progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace ashlar::cli {

namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kRefresh = std::chrono::milliseconds(250);
constexpr auto kPatience = std::chrono::seconds(2);  // before a line appears away from a terminal

void to_stderr(const std::string& text) {
  std::fputs(text.c_str(), stderr);
  std::fflush(stderr);
}

}  // namespace

Progress::Progress()
    : terminal_(isatty(STDERR_FILENO) == 1), since_(Clock::now()), watcher_([this] { watch(); }) {}

Progress::~Progress() {
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
    erase();
  }
  changed_.notify_all();
  watcher_.join();
}

void Progress::stage(std::string what) {
  const std::lock_guard lock(mutex_);
  erase();
  what_ = std::move(what);
  since_ = Clock::now();
  shown_ = false;
}

void Progress::watch() {
  std::unique_lock lock(mutex_);
  while (!done_) {
    changed_.wait_for(lock, kRefresh);
    if (done_ || what_.empty()) continue;
    const auto elapsed = Clock::now() - since_;
    if (terminal_ || (elapsed >= kPatience && !shown_)) print(elapsed);
  }
}

void Progress::print(Clock::duration elapsed) {
  const double seconds = std::chrono::duration<double>(elapsed).count();
  if (terminal_)
    to_stderr(fmt::format("\r\033[Kashlar: {} ({:.0f} s)", what_, seconds));
  else
    to_stderr(fmt::format("ashlar: {} ...\n", what_));
  shown_ = true;
}

void Progress::erase() {
  if (terminal_ && shown_) to_stderr("\r\033[K");
}

}  // namespace ashlar::cli
