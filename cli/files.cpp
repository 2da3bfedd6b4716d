#include "files.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

namespace ashlar::cli {

namespace {

constexpr std::size_t kMaxGraphBytes = std::size_t{256} << 20;

struct CloseFile {
  void operator()(std::FILE* file) const {
    if (file != stdin) std::fclose(file);
  }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

[[noreturn]] void io_error(const std::string& path, std::string_view action, int error) {
  throw Error(ErrorCode::io,
              fmt::format("{} cannot be {}: {}", path, action, std::strerror(error)));
}

}  // namespace

std::string read_file(const std::string& path, std::size_t max_bytes) {
  if (std::error_code ignored; std::filesystem::is_directory(path, ignored))
    io_error(path, "read", EISDIR);
  const File file(path == "-" ? stdin : std::fopen(path.c_str(), "rb"));
  if (!file) io_error(path, "read", errno);
  std::string text;
  char chunk[1 << 16];
  while (const std::size_t count = std::fread(chunk, 1, sizeof(chunk), file.get())) {
    text.append(chunk, count);
    if (text.size() > max_bytes)
      throw Error(ErrorCode::io,
                  fmt::format("{} is longer than the {} bytes accepted", path, max_bytes));
  }
  if (std::ferror(file.get())) io_error(path, "read", errno);
  return text;
}

void write_file(const std::string& path, std::string_view bytes) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (!file) io_error(path, "written", errno);
  errno = 0;
  const bool complete = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  const int write_error = errno;
  const bool closed = std::fclose(file) == 0;
  if (complete && closed) return;
  const int error = complete ? errno : write_error;
  if (std::error_code ignored; std::filesystem::is_regular_file(path, ignored))
    std::remove(path.c_str());
  io_error(path, "written", error);
}

Graph read_graph(const std::string& path) {
  const std::string text = read_file(path, kMaxGraphBytes);
  try {
    Graph graph = Graph::from_json(text);
    graph.validate();
    return graph;
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", path, error.what()));
  }
}

}  // namespace ashlar::cli
