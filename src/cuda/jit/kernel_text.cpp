#include "cuda/jit/kernel_text.hpp"

#include <algorithm>
#include <vector>

#include "base/fail.hpp"

namespace ashlar::cuda {

namespace {

std::string_view text_of(std::string_view name) {
  for (const KernelFile& file : kernel_files())
    if (file.name == name) return file.text;
  fail(ErrorCode::internal, "cuda: there is no kernel file '{}'", name);
}

// Appends the file's own lines to `body`, and first, once, those of what it includes to `library`.
void take(std::string_view name, std::vector<std::string_view>& seen, std::string& library,
          std::string& body) {
  std::string_view text = text_of(name);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end);
    constexpr std::string_view kInclude = "#include \"";
    if (line.starts_with("#pragma once")) continue;
    if (!line.starts_with(kInclude)) {
      body += line;
      continue;
    }
    const std::string_view included =
        line.substr(kInclude.size(), line.rfind('"') - kInclude.size());
    if (std::find(seen.begin(), seen.end(), included) != seen.end()) continue;
    seen.push_back(included);
    std::string own;
    take(included, seen, library, own);
    library += own;
  }
}

}  // namespace

std::string assemble(std::string_view kernel_file, std::string_view head) {
  return assemble(std::span(&kernel_file, 1), head);
}

std::string assemble(std::span<const std::string_view> kernel_files, std::string_view head) {
  std::vector<std::string_view> seen;
  std::string library, body;
  for (std::string_view file : kernel_files) take(file, seen, library, body);
  return library + std::string(head) + body;
}

}  // namespace ashlar::cuda
