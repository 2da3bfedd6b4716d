// Error messages when a part of the GPU stack is missing or broken. The driver, the compiler and
// the environment are examined once per process, so every case is a child process: this program
// with one test that prints what it finds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ashlar/error.hpp>
#include <ashlar/memory.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "cuda/cuda_device.hpp"
#include "cuda/driver/context.hpp"
#include "cuda/driver/loaded_kernel.hpp"
#include "cuda/jit/kernel_image.hpp"

namespace ashlar::cuda {
namespace {

using testing::AllOf;
using testing::HasSubstr;
namespace fs = std::filesystem;

constexpr const char* kProbe = "ASHLAR_CUDA_PROBE";  // bytes to allocate

// Runs one kernel on the GPU and prints the outcome.
TEST(DriverProbe, TellsWhatItFinds) {
  const char* bytes = std::getenv(kProbe);
  if (bytes == nullptr) GTEST_SKIP() << "for the other tests of this file";
  std::printf("driver: %s\n", driver().api != nullptr ? "ok" : driver().reason.c_str());
  try {
    const int device = detect_gpu(0).ordinal;
    const auto image =
        kernel_images().get({"probe", "extern \"C\" __global__ void probe(int** x) { **x = 42; }"},
                            architecture_of(detect_gpu(0).compute_capability));
    std::printf("image: %s\n", image->from == KernelImage::From::cache ? "cache" : "compiler");
    const ContextScope scope(device);
    const LoadedKernel kernel(device, image->cubin, "probe");
    const Memory memory(Device::named("cuda:0"), std::atoll(bytes));
    Memory pointer(Device::named("cuda:0"), sizeof(void*));
    void* address = memory.data();
    pointer.upload(&address, sizeof address);
    void* argument = pointer.data();
    kernel.launch(scope, nullptr, {.threads = 1}, &argument);
    int result = 0;
    memory.download(&result, sizeof result);
    std::printf("result: %d\n", result);
  } catch (const Error& error) {
    std::printf("error %s: %s\n", to_string(error.code()), error.what());
  }
}

class DriverFailures : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(fs::path(ASHLAR_EMULATOR_FOLDER) / "libcuda.so.1"))
      GTEST_SKIP() << "there is no emulated GPU here";
    std::string pattern = fs::temp_directory_path() / "ashlar_failures_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override {
    if (!folder_.empty()) fs::remove_all(folder_);
  }

  // Output of the probe on the emulated GPU with these environment settings, in shell syntax.
  std::string probe(const std::string& settings = {}, const std::string& before = {}) const {
    const std::string emulator = ASHLAR_EMULATOR_FOLDER;
    const std::string program = fs::read_symlink("/proc/self/exe");
    const std::string command =
        before + " env LD_LIBRARY_PATH=" + emulator + ":$LD_LIBRARY_PATH ASHLAR_NVRTC=" + emulator +
        "/libnvrtc.so ASHLAR_CACHE=" + cache() + " " + kProbe + "=64 EMULATED_CUDA=" + counted() +
        " " + settings + " " + program + " --gtest_filter=DriverProbe.TellsWhatItFinds 2>&1";
    std::FILE* pipe = popen(command.c_str(), "r");
    std::string said;
    for (int c = 0; (c = std::fgetc(pipe)) != EOF;) said += static_cast<char>(c);
    const int status = pclose(pipe);
    EXPECT_EQ(status, 0) << command << "\n" << said;
    return said;
  }
  std::string cache() const { return folder_ / "cache"; }
  std::string counted() const { return "compiles=" + (folder_ / "compiles").string(); }
  // Number of compilations.
  int compiles() const {
    std::ifstream lines(folder_ / "compiles");
    int count = 0;
    for (std::string line; std::getline(lines, line);) ++count;
    return count;
  }
  fs::path folder_;
};

TEST_F(DriverFailures, WithoutAny) {
  EXPECT_THAT(probe(), AllOf(HasSubstr("driver: ok"), HasSubstr("image: compiler"),
                             HasSubstr("result: 42")));
  EXPECT_THAT(probe(), AllOf(HasSubstr("image: cache"), HasSubstr("result: 42")));
  EXPECT_EQ(compiles(), 1);
}

TEST_F(DriverFailures, NoDriver) {
  std::ofstream(folder_ / "libcuda.so.1") << "no library";
  EXPECT_THAT(probe("LD_LIBRARY_PATH=" + folder_.string()),
              AllOf(HasSubstr("driver: no NVIDIA driver: "),
                    HasSubstr("error device error: cuda: no NVIDIA driver: ")));
}

TEST_F(DriverFailures, DriverTooOld) {
  EXPECT_THAT(probe("EMULATED_CUDA=version=11040"),
              AllOf(HasSubstr("error device error: cuda: the NVIDIA driver is too old: "),
                    HasSubstr("offers CUDA 11.4, Ashlar needs 12.0 or newer")));
}

TEST_F(DriverFailures, DriverDoesNotStart) {
  EXPECT_THAT(probe("EMULATED_CUDA=start_error=803"),
              HasSubstr("error device error: cuda: the NVIDIA driver does not start: system has "
                        "unsupported display driver / cuda driver combination"));
}

TEST_F(DriverFailures, NoGpu) {
  EXPECT_THAT(probe("EMULATED_CUDA=devices=0"),
              HasSubstr("error device error: cuda: the NVIDIA driver finds no GPU (is "
                        "CUDA_VISIBLE_DEVICES empty?)"));
}

TEST_F(DriverFailures, NoCompiler) {
  EXPECT_THAT(
      probe("ASHLAR_NVRTC=/no/such/libnvrtc.so"),
      AllOf(HasSubstr("error device error: cuda: no NVRTC, the compiler for GPU kernels: set "
                      "ASHLAR_NVRTC to a libnvrtc.so"),
            HasSubstr("Tried:\n  /no/such/libnvrtc.so: ")));
  EXPECT_THAT(probe("ASHLAR_NVRTC=libm.so.6"),
              HasSubstr("is not a supported NVRTC: it has no nvrtcGetErrorString"));
}

// Cached kernels need no compiler.
TEST_F(DriverFailures, NoCompilerButACache) {
  probe();
  EXPECT_THAT(probe("ASHLAR_NVRTC=/no/such/libnvrtc.so"),
              AllOf(HasSubstr("image: cache"), HasSubstr("result: 42")));
}

TEST_F(DriverFailures, OutOfDeviceMemory) {
  EXPECT_THAT(probe(std::string("EMULATED_CUDA=memory=1000000 ") + kProbe + "=2000000"),
              HasSubstr("error out of memory: cuda: allocating 2000000 bytes on the GPU: out of "
                        "memory (CUDA_ERROR_OUT_OF_MEMORY); free device memory or grant a smaller "
                        "workspace"));
}

// An unusable cache only costs time, and the log says why.
TEST_F(DriverFailures, CacheThatOthersMayWriteTo) {
  fs::create_directories(cache() + "/cubin");
  fs::permissions(cache() + "/cubin", fs::perms::all);
  for (int run = 0; run < 2; ++run)
    EXPECT_THAT(probe("ASHLAR_LOG=info"),
                AllOf(HasSubstr(cache() + "/cubin is writable by other users"),
                      HasSubstr("image: compiler"), HasSubstr("result: 42")));
  EXPECT_EQ(compiles(), 2);
}

TEST_F(DriverFailures, CacheThatCannotBeWritten) {
  std::ofstream(cache()) << "a file where the directory should be";
  EXPECT_THAT(probe("ASHLAR_LOG=info"), AllOf(HasSubstr("Not a directory; the entry is not stored"),
                                              HasSubstr("result: 42")));
}

TEST_F(DriverFailures, FullDisk) {
  fs::create_directories(cache());
  fs::permissions(cache(), fs::perms::owner_all);
  const std::string on_small_disk =
      "unshare -m sh -c 'mount -t tmpfs -o size=4k,mode=700 none " + cache() + " && exec \"$@\"' -";
  if (std::system((on_small_disk + " true 2>/dev/null").c_str()) != 0)
    GTEST_SKIP() << "no right to mount a small disk";
  EXPECT_THAT(probe("ASHLAR_LOG=info", on_small_disk),
              AllOf(HasSubstr("No space left on device; the entry is not stored"),
                    HasSubstr("image: compiler"), HasSubstr("result: 42")));
}

TEST_F(DriverFailures, DamagedCache) {
  probe();
  for (const auto& entry : fs::directory_iterator(cache() + "/cubin"))
    fs::resize_file(entry.path(), entry.file_size() / 2);
  EXPECT_THAT(probe("ASHLAR_LOG=info"),
              AllOf(HasSubstr("is damaged or of another version and will be rebuilt"),
                    HasSubstr("image: compiler"), HasSubstr("result: 42")));
  EXPECT_THAT(probe(), HasSubstr("image: cache"));
  EXPECT_EQ(compiles(), 2);
}

// An intact entry with code for another GPU.
TEST_F(DriverFailures, CodeForAnotherGpu) {
  probe();
  EXPECT_THAT(probe("EMULATED_CUDA=capability=80"), HasSubstr("image: compiler"));
}

TEST_F(DriverFailures, SixteenProcessesOnAnEmptyCache) {
  std::vector<std::string> said(16);
  std::vector<std::thread> threads;
  for (std::string& one : said) threads.emplace_back([&] { one = probe(); });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& one : said) EXPECT_THAT(one, HasSubstr("result: 42"));
  EXPECT_EQ(compiles(), 1);
}

}  // namespace
}  // namespace ashlar::cuda
