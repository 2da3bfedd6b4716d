#include "doctor/apart.hpp"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>

namespace ashlar::cli {

namespace {

constexpr int kThrew = 1;

void write_all(int to, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t written = ::write(to, text.data() + done, text.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    done += static_cast<std::size_t>(written);
  }
}

[[noreturn]] void be_the_child(const std::function<std::string()>& work, int to, unsigned seconds) {
  for (const int caught : {SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE, SIGALRM})
    std::signal(caught, SIG_DFL);
  alarm(seconds);
  int code = 0;
  std::string text;
  try {
    text = work();
  } catch (const std::exception& error) {
    text = error.what();
    code = kThrew;
  }
  write_all(to, text);
  _exit(code);
}

std::string read_all(int from) {
  std::string text;
  std::array<char, 4096> part{};
  for (;;) {
    const ssize_t count = ::read(from, part.data(), part.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return text;
    text.append(part.data(), static_cast<std::size_t>(count));
  }
}

}  // namespace

Apart run_apart(const std::function<std::string()>& work, unsigned seconds) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) return {false, fmt::format("no pipe: {}", std::strerror(errno))};
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    be_the_child(work, ends[1], seconds);
  }
  close(ends[1]);
  if (child < 0) {
    close(ends[0]);
    return {false, fmt::format("no child process: {}", std::strerror(errno))};
  }
  Apart result;
  result.text = read_all(ends[0]);
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status))
    result.text = WTERMSIG(status) == SIGALRM
                      ? fmt::format("it took more than {} s", seconds)
                      : fmt::format("it was ended by signal {} ({})", WTERMSIG(status),
                                    strsignal(WTERMSIG(status)));
  else if (WEXITSTATUS(status) > kThrew)
    result.text = fmt::format("it ended the process with code {}", WEXITSTATUS(status));
  result.ok = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  return result;
}

}  // namespace ashlar::cli
