// Emulated NVRTC: compiles the kernel text with the host C++ compiler into a shared library, which
// takes the place of the cubin.
#include <dirent.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "options.hpp"

extern char** environ;

namespace {

struct Program {
  std::string text, name, cubin, log;
};

enum Status : int { kSuccess = 0, kInvalidInput = 3, kInvalidOption = 5, kCompilation = 6 };

// --- the text

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Index of the parenthesis that closes the one at `open`.
std::size_t closing(std::string_view text, std::size_t open) {
  int depth = 0;
  for (std::size_t at = open; at < text.size(); ++at) {
    if (text[at] == '(') ++depth;
    if (text[at] == ')' && --depth == 0) return at;
  }
  return text.size() - 1;
}

struct Entry {
  std::string name, most_threads;
};
// extern "C" __global__ void __launch_bounds__(kThreads) NAME(...)
std::vector<Entry> entries_of(const std::string& text) {
  std::vector<Entry> entries;
  constexpr std::string_view kGlobal = "__global__", kBounds = "__launch_bounds__";
  for (std::size_t at = 0; (at = text.find(kGlobal, at)) != std::string::npos;) {
    at += kGlobal.size();
    Entry entry{.name = {}, .most_threads = "1024"};
    for (std::size_t open = text.find('(', at); open != std::string::npos;
         open = text.find('(', at)) {
      std::size_t last = open;
      while (last > at && !is_word(text[last - 1])) --last;
      std::size_t first = last;
      while (first > at && is_word(text[first - 1])) --first;
      entry.name = text.substr(first, last - first);
      at = closing(text, open) + 1;
      if (entry.name != kBounds) break;
      const std::size_t comma = text.find(',', open);
      entry.most_threads = text.substr(open + 1, std::min(comma, at - 1) - open - 1);
    }
    // Only extern "C" kernels, which can be found by name.
    const std::size_t line = text.rfind("extern \"C\"", text.rfind(kGlobal, at));
    if (line != std::string::npos && text.find_first_of(";}", line) > text.rfind(kGlobal, at))
      entries.push_back(std::move(entry));
  }
  return entries;
}

// __grid_constant__ parameters become references, to avoid a copy per thread.
std::string with_references(std::string text) {
  constexpr std::string_view kGrid = "__grid_constant__ ";
  for (std::size_t at = 0; (at = text.find(kGrid, at)) != std::string::npos;) {
    at += kGrid.size();
    while (at < text.size() && is_word(text[at])) ++at;
    text.insert(at, "&");
  }
  return text;
}

std::string host_text(const Program& program, const std::string& architecture) {
  std::string text = "namespace {\n#line 1 \"" + program.name + "\"\n";
  text += with_references(program.text) + "\n#line 1 \"launchers\"\n}\n";
  text +=
      "extern \"C\" {\nextern unsigned char __bss_start[], _end[];\n"
      "#define EXPORTED __attribute__((visibility(\"default\"), used)) extern const\n"
      "EXPORTED emulated::Image emulated_image = {&emulated_state, \"" +
      architecture +
      "\", __bss_start, _end};\n"
      "EXPORTED emulated::ClusterState* emulated_cluster = &emulated_cluster_state;\n"
      "EXPORTED emulated::TensorState* emulated_tensor = &emulated_tensor_state;\n";
  for (const Entry& entry : entries_of(program.text))
    text += "EXPORTED emulated::Kernel emulated_" + entry.name + " = EmulatedCall<&" + entry.name +
            ">::describe(" + entry.most_threads + ");\n";
  return text + "}\n";
}

// --- the compiler

// A temporary folder, removed by the destructor.
class Folder {
 public:
  Folder() {
    const char* base = std::getenv("TMPDIR");
    path_ = std::string(base != nullptr ? base : "/tmp") + "/emulated_nvrtc_XXXXXX";
    if (mkdtemp(path_.data()) == nullptr) path_.clear();
  }
  ~Folder() {
    if (path_.empty()) return;
    for (const char* name : {"kernel.cpp", "kernel.so", "log"}) unlink(file(name).c_str());
    rmdir(path_.c_str());
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  bool exists() const { return !path_.empty(); }
  std::string file(const char* name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

std::string contents(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  std::stringstream all;
  all << stream.rdbuf();
  return all.str();
}

// Runs a compiler with its output in a file. False when it cannot be started or fails.
bool run(const char* compiler, const Folder& folder) {
  const std::string source = folder.file("kernel.cpp"), output = folder.file("kernel.so"),
                    log = folder.file("log");
  std::vector<const char*> arguments = {
      compiler, "-std=c++17", EMULATOR_OPTIMISATION, "-fPIC", "-shared", "-w", "-pipe",
      "-fvisibility=hidden", "-fno-strict-aliasing", "-fwrapv", "-ffp-contract=off",
      "-fno-exceptions", "-fno-rtti", "-fno-asynchronous-unwind-tables", "-fno-math-errno",
      "-fmax-errors=20", "-include", EMULATOR_SHIM, source.c_str(), "-o", output.c_str(),
      // Reproducible output.
      "-s", "-Wl,--build-id=none", "-Wl,-z,defs", "-nostartfiles", "-nodefaultlibs", "-lm", "-lc",
      "-lgcc"};
  // GPUs fault on misaligned vector accesses.
  if (emulated::options().aligned)
    arguments.insert(arguments.end(),
                     {"-fsanitize=alignment", "-fsanitize-undefined-trap-on-error"});
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  pid_t child = 0;
  const int error = posix_spawnp(&child, compiler, &actions, nullptr,
                                 const_cast<char**>(arguments.data()), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return false;
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void note(const Program& program, const std::string& text) {
  const emulated::Options& options = emulated::options();
  if (!options.compiles.empty()) {
    const std::string line = program.name + "\n";
    const int file =
        open(options.compiles.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    [[maybe_unused]] const ssize_t written = write(file, line.data(), line.size());
    close(file);
  }
  if (!options.keep.empty()) {
    static int number = 0;
    std::ofstream(options.keep + "/" + program.name + "_" + std::to_string(getpid()) + "_" +
                  std::to_string(number++) + ".cpp")
        << text;
  }
}

}  // namespace

extern "C" {

const char* nvrtcGetErrorString(int status) {
  switch (status) {
    case kSuccess: return "NVRTC_SUCCESS";
    case kInvalidInput: return "NVRTC_ERROR_INVALID_INPUT";
    case kInvalidOption: return "NVRTC_ERROR_INVALID_OPTION";
    case kCompilation: return "NVRTC_ERROR_COMPILATION";
    default: return "NVRTC_ERROR_INTERNAL_ERROR";
  }
}

int nvrtcVersion(int* major, int* minor) {
  *major = emulated::options().version / 1000;
  *minor = emulated::options().version % 1000 / 10;
  return kSuccess;
}

int nvrtcCreateProgram(Program** program, const char* text, const char* name, int headers,
                       const char* const*, const char* const*) {
  if (headers != 0) return kInvalidInput;
  *program = new Program{text, name != nullptr ? name : "default_program", {}, {}};
  return kSuccess;
}

int nvrtcDestroyProgram(Program** program) {
  delete *program;
  *program = nullptr;
  return kSuccess;
}

int nvrtcCompileProgram(Program* program, int count, const char* const* options) {
  constexpr std::string_view kTarget = "--gpu-architecture=";
  std::string architecture;
  for (int i = 0; i < count; ++i) {
    const std::string_view option = options[i];
    if (option.rfind(kTarget, 0) == 0) architecture = option.substr(kTarget.size());
  }
  if (architecture.rfind("sm_", 0) != 0) {
    program->log = "emulated NVRTC: no --gpu-architecture=sm_... among the options";
    return kInvalidOption;
  }
  const Folder folder;
  const std::string text = host_text(*program, architecture);
  note(*program, text);
  if (!(std::ofstream(folder.file("kernel.cpp")) << text << std::flush)) {
    program->log = "emulated NVRTC: the temporary folder cannot be written";
    return kCompilation;
  }
  bool good = false;
  for (const char* compiler : {EMULATOR_COMPILER, "g++", "c++"}) {
    good = run(compiler, folder);
    program->log = contents(folder.file("log"));
    if (good || !program->log.empty()) break;
  }
  program->cubin = contents(folder.file("kernel.so"));
  if (!good) return kCompilation;
  // The ptxas report of the real compiler.
  for (const Entry& entry : entries_of(program->text))
    program->log += "emulated: function '" + entry.name +
                    "': 0 bytes spill stores, 0 bytes spill loads, Used 32 registers\n";
  return kSuccess;
}

int nvrtcGetCUBINSize(Program* program, std::size_t* bytes) {
  *bytes = program->cubin.size();
  return kSuccess;
}
int nvrtcGetCUBIN(Program* program, char* bytes) {
  std::memcpy(bytes, program->cubin.data(), program->cubin.size());
  return kSuccess;
}
int nvrtcGetProgramLogSize(Program* program, std::size_t* bytes) {
  *bytes = program->log.size() + 1;
  return kSuccess;
}
int nvrtcGetProgramLog(Program* program, char* text) {
  std::memcpy(text, program->log.c_str(), program->log.size() + 1);
  return kSuccess;
}

}  // extern "C"
