#include "cli/process.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace ashlar::cli_test {

namespace {

std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

const std::filesystem::path& scratch_root() {
  struct Root {
    std::filesystem::path path =
        std::filesystem::temp_directory_path() / ("ashlar_cli_test_" + std::to_string(getpid()));
    Root() { std::filesystem::create_directories(path); }
    ~Root() {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
  };
  static const Root root;
  return root.path;
}

}  // namespace

Outcome ashlar(const std::vector<std::string>& arguments,
               const std::vector<std::string>& environment, const std::string& stdout_path) {
  static int counter = 0;
  const std::string stem = (scratch_root() / ("run" + std::to_string(counter++))).string();
  const std::string out = stdout_path.empty() ? stem + ".out" : stdout_path;
  std::string command = "env";
  for (const std::string& entry : environment) command += " " + quoted(entry);
  command += " " + quoted(ASHLAR_CLI_PATH);
  for (const std::string& argument : arguments) command += " " + quoted(argument);
  command += " > " + quoted(out) + " 2> " + quoted(stem + ".err") + " < /dev/null";
  const int status = std::system(command.c_str());
  Outcome outcome;
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (stdout_path.empty()) outcome.output = read_text(out);
  outcome.errors = read_text(stem + ".err");
  return outcome;
}

std::string example(const std::string& name) {
  return std::string(ASHLAR_SOURCE_DIR) + "/examples/graphs/" + name + ".json";
}

std::string scratch_folder(const std::string& name) {
  const std::filesystem::path path = scratch_root() / name;
  std::filesystem::create_directories(path);
  return path.string();
}

void write_text(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  if (!file.flush()) throw std::runtime_error("cannot write " + path);
}

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace ashlar::cli_test
