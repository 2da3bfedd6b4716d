// One line on stderr that says what long work is doing.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace ashlar::cli {

// On a terminal the line is rewritten in place and removed at the end; elsewhere one line is
// printed per stage that passes two seconds.
class Progress {
 public:
  Progress();
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void stage(std::string what);
  void pause() { stage({}); }  // before printing results

 private:
  void watch();
  void print(std::chrono::steady_clock::duration elapsed);
  void erase();

  const bool terminal_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string what_;
  std::chrono::steady_clock::time_point since_;
  bool shown_ = false;
  bool done_ = false;
  std::thread watcher_;
};

}  // namespace ashlar::cli
