// Runs a fuzz target without libFuzzer: every corpus file, then seeded mutations of them.
// A run is a function of the corpus, --seed and --runs, so a failure repeats. When the target dies,
// the input it was given is left in crash-<seed>-<run> in the working directory.

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
// Present only in sanitizer builds, which end the process without raising a signal.
extern "C" [[gnu::weak]] void __sanitizer_set_death_callback(void (*callback)());

namespace {

using Bytes = std::vector<uint8_t>;
constexpr size_t kMaxInputBytes = 64 * 1024;
constexpr size_t kMaxMutationsPerInput = 8;

struct Options {
  uint64_t runs = 1000;
  uint64_t seed = 1;
  double seconds = 0;  // 0: no limit
  std::vector<std::filesystem::path> paths;
};

// Read by the crash handler, which may not allocate.
const Bytes* current_input = nullptr;
char crash_path[64] = "crash";

void save_current_input() {
  if (current_input == nullptr) return;
  const int file = open(crash_path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (file < 0) return;
  const ssize_t written = write(file, current_input->data(), current_input->size());
  close(file);
  constexpr std::string_view note = "the input is in ";
  ssize_t noted = write(STDERR_FILENO, note.data(), note.size());
  noted += write(STDERR_FILENO, crash_path, std::char_traits<char>::length(crash_path));
  noted += write(STDERR_FILENO, "\n", 1);
  static_cast<void>(written);
  static_cast<void>(noted);
  current_input = nullptr;
}

void on_signal(int signal) {
  save_current_input();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void install_crash_handlers() {
  if (__sanitizer_set_death_callback != nullptr) {
    __sanitizer_set_death_callback(save_current_input);
    std::signal(SIGABRT, on_signal);
    return;
  }
  for (const int signal : {SIGSEGV, SIGABRT, SIGFPE, SIGBUS, SIGILL})
    std::signal(signal, on_signal);
}

// Words that open deep paths in the readers under test.
const std::vector<std::string> kDictionary = {"{",
                                              "}",
                                              "[",
                                              "]",
                                              ",",
                                              ":",
                                              "\"",
                                              "null",
                                              "true",
                                              "false",
                                              "-",
                                              "-1",
                                              "0",
                                              "1e308",
                                              "1e-400",
                                              "9223372036854775807",
                                              "9223372036854775808",
                                              "-9223372036854775808",
                                              "18446744073709551616",
                                              "0.5",
                                              "NaN",
                                              "\\u0000",
                                              "\\ud800",
                                              "[[[[[[[[",
                                              "{\"a\":",
                                              "\"version\"",
                                              "\"nodes\"",
                                              "\"ops\"",
                                              "\"tensors\"",
                                              "\"name\"",
                                              "\"dims\"",
                                              "\"strides\"",
                                              "\"dtype\"",
                                              "\"inputs\"",
                                              "\"outputs\"",
                                              "\"op\"",
                                              "\"f16\"",
                                              "\"f32\"",
                                              "\"conv\"",
                                              "\"matmul\"",
                                              "\"attention\"",
                                              std::string("\x93NUMPY\x01\x00", 8),
                                              std::string("\x93NUMPY\x02\x00", 8),
                                              std::string("\xff\xff\xff\xff", 4),
                                              std::string("\x00\x00", 2),
                                              "'descr': '<f4'",
                                              "'<f8'",
                                              "'|i1'",
                                              "'fortran_order': False",
                                              "'fortran_order': True",
                                              "'shape': (",
                                              ", }",
                                              "(1,)",
                                              "()"};

class Mutator {
 public:
  Mutator(const std::vector<Bytes>& corpus, uint64_t seed) : corpus_(corpus), random_(seed) {}

  Bytes next() {
    Bytes input = corpus_.empty() ? Bytes{} : corpus_[below(corpus_.size())];
    const size_t count = 1 + below(kMaxMutationsPerInput);
    for (size_t i = 0; i < count; ++i) mutate(input);
    input.resize(std::min(input.size(), kMaxInputBytes));
    return input;
  }

 private:
  size_t below(size_t bound) { return bound == 0 ? 0 : static_cast<size_t>(random_() % bound); }

  void insert(Bytes& input, size_t at, const uint8_t* data, size_t size) {
    input.insert(input.begin() + static_cast<ptrdiff_t>(at), data, data + size);
  }

  void mutate(Bytes& input) {
    const size_t at = below(input.size() + 1);
    switch (below(6)) {
      case 0:  // flip a bit
        if (at < input.size()) input[at] = static_cast<uint8_t>(input[at] ^ (1U << below(8)));
        break;
      case 1: {  // insert random bytes
        Bytes noise(1 + below(4));
        for (uint8_t& byte : noise) byte = static_cast<uint8_t>(below(256));
        insert(input, at, noise.data(), noise.size());
        break;
      }
      case 2: {  // delete a stretch
        const size_t size = std::min(below(32) + 1, input.size() - at);
        const auto first = input.begin() + static_cast<ptrdiff_t>(at);
        input.erase(first, first + static_cast<ptrdiff_t>(size));
        break;
      }
      case 3: {  // splice a stretch of another input
        if (corpus_.empty()) break;
        const Bytes& other = corpus_[below(corpus_.size())];
        const size_t from = below(other.size());
        insert(input, at, other.data() + from, std::min(other.size() - from, below(256)));
        break;
      }
      case 4: {  // insert a word
        const std::string& word = kDictionary[below(kDictionary.size())];
        insert(input, at, reinterpret_cast<const uint8_t*>(word.data()), word.size());
        break;
      }
      default: {  // overwrite with a word
        const std::string& word = kDictionary[below(kDictionary.size())];
        const size_t size = std::min(word.size(), input.size() - at);
        std::copy_n(word.begin(), size, input.begin() + static_cast<ptrdiff_t>(at));
        break;
      }
    }
  }

  const std::vector<Bytes>& corpus_;
  std::mt19937_64 random_;
};

Bytes read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path.string());
  return Bytes(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

std::vector<std::filesystem::path> list_files(const std::vector<std::filesystem::path>& paths) {
  std::vector<std::filesystem::path> files;
  for (const std::filesystem::path& path : paths) {
    if (!std::filesystem::is_directory(path)) {
      files.push_back(path);
      continue;
    }
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());  // the order must not depend on the file system
  return files;
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.rfind("--", 0) != 0) {
      options.paths.emplace_back(argument);
      continue;
    }
    if (i + 1 >= argc) throw std::runtime_error(argument + " needs a value");
    const std::string value = argv[++i];
    if (argument == "--runs") {
      options.runs = std::stoull(value);
    } else if (argument == "--seed") {
      options.seed = std::stoull(value);
    } else if (argument == "--seconds") {
      options.seconds = std::stod(value);
    } else {
      throw std::runtime_error("unknown option " + argument);
    }
  }
  return options;
}

// noexcept: an exception that leaves the target is a finding, and must end in the crash handler.
void run_one(const Bytes& input, uint64_t seed, const std::string& label) noexcept {
  std::snprintf(crash_path, sizeof crash_path, "crash-%llu-%s",
                static_cast<unsigned long long>(seed), label.c_str());
  current_input = &input;
  LLVMFuzzerTestOneInput(input.data(), input.size());
  current_input = nullptr;
}

void run_all(const Options& options) {
  std::vector<Bytes> corpus;
  for (const std::filesystem::path& path : list_files(options.paths)) {
    corpus.push_back(read_file(path));
    run_one(corpus.back(), options.seed, "corpus" + std::to_string(corpus.size() - 1));
  }
  std::printf("corpus: %zu inputs, seed %llu\n", corpus.size(),
              static_cast<unsigned long long>(options.seed));
  std::fflush(stdout);

  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  Mutator mutator(corpus, options.seed);
  uint64_t done = 0;
  for (; done < options.runs; ++done) {
    const std::chrono::duration<double> elapsed = Clock::now() - start;
    if (options.seconds > 0 && elapsed.count() >= options.seconds) break;
    run_one(mutator.next(), options.seed, std::to_string(done));
  }
  const std::chrono::duration<double> elapsed = Clock::now() - start;
  std::printf("mutations: %llu inputs, seed %llu, %.1f s, no crash\n",
              static_cast<unsigned long long>(done), static_cast<unsigned long long>(options.seed),
              elapsed.count());
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Options options = parse(argc, argv);
    install_crash_handlers();
    run_all(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\nusage: %s [--runs N] [--seed N] [--seconds S] CORPUS...\n",
                 error.what(), argv[0]);
    return 2;
  }
  return 0;
}
