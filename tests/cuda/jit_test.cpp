// Kernel text and its compilation, without a GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ashlar/error.hpp>
#include <filesystem>
#include <fstream>
#include <thread>

#include "cuda/cuda_device.hpp"
#include "cuda/driver/driver_api.hpp"
#include "cuda/jit/kernel_image.hpp"
#include "cuda/jit/kernel_text.hpp"
#include "cuda/jit/nvrtc.hpp"
#include "cuda/text/spec_text.hpp"

namespace ashlar::cuda {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Driver, TellsWhyItCannotBeUsed) {
  if (driver().api != nullptr) GTEST_SKIP() << "there is a GPU";
  EXPECT_THAT(driver().reason, HasSubstr("NVIDIA driver"));
  try {
    driver_api();
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::device);
    EXPECT_THAT(error.what(), HasSubstr(driver().reason));
  }
  EXPECT_EQ(device_count(), 0);
  EXPECT_THROW(detect_gpu(0), Error);
}

TEST(Driver, DescribesItsGpus) {
  if (device_count() == 0) GTEST_SKIP() << driver().reason;
  const DeviceProps gpu = detect_gpu(0);
  EXPECT_TRUE(gpu.present);
  EXPECT_GE(gpu.compute_capability, 50);
  EXPECT_GT(gpu.compute_units, 0);
  EXPECT_GT(gpu.bytes_per_second, 1e10);
  EXPECT_THROW(detect_gpu(device_count()), Error);
}

TEST(KernelText, LibraryFilesComeOnceAndFirst) {
  const std::string text = assemble("pointwise.cuh", "// the head\n");
  const auto count = [&](const char* word) {
    std::size_t found = 0;
    for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos; ++at) ++found;
    return found;
  };
  EXPECT_EQ(count("struct bf16 {"), 1u);
  EXPECT_EQ(count("// the head"), 1u);
  EXPECT_LT(text.find("struct bf16 {"), text.find("// the head"));
  EXPECT_LT(text.find("// the head"), text.find("__global__"));
  EXPECT_THAT(text, Not(HasSubstr("#include")));
  EXPECT_THAT(text, Not(HasSubstr("#pragma once")));
  EXPECT_THROW(assemble("no_such_kernel.cuh", ""), Error);
}

// A temporary folder with kernel files.
class KernelFolder {
 public:
  KernelFolder() {
    std::string pattern = std::filesystem::temp_directory_path() / "ashlar_kernels_XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no folder");
    path = pattern;
  }
  ~KernelFolder() { std::filesystem::remove_all(path); }
  KernelFolder(const KernelFolder&) = delete;
  KernelFolder& operator=(const KernelFolder&) = delete;
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(path + "/" + name).parent_path());
    std::ofstream(path + "/" + name) << text;
  }
  std::string path;
};

TEST(KernelText, FilesOfAFolderComeFirst) {
  const std::string_view files[] = {"pointwise.cuh"};
  const KernelTexts own("");
  EXPECT_EQ(own.assemble(files, "// the head\n"), assemble("pointwise.cuh", "// the head\n"));

  const KernelFolder folder;
  folder.write("pointwise.cuh", "#include \"lib/elements.cuh\"\n#include \"new.cuh\"\nthe kernel");
  folder.write("new.cuh", "#include \"lib/philox.cuh\"\nwhat is new\n");
  folder.write("notes.txt", "not a kernel");
  const std::string text = KernelTexts(folder.path).assemble(files, "// the head\n");
  EXPECT_THAT(text, testing::EndsWith("what is new\n// the head\nthe kernel\n"));
  EXPECT_THAT(text, HasSubstr("struct bf16 {"));  // the embedded lib/elements.cuh
  EXPECT_THAT(text, HasSubstr("philox"));         // included by the folder's file
  EXPECT_THAT(text, Not(HasSubstr("__global__")));
}

TEST(KernelText, FoldersThatCannotBeUsed) {
  const auto reason = [](const std::string& folder) -> std::string {
    try {
      const std::string_view files[] = {"pointwise.cuh"};
      KernelTexts(folder).assemble(files, "");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::io) << error.what();
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(reason("/nowhere"), HasSubstr("'/nowhere' (ASHLAR_KERNELS): No such file"));
  const KernelFolder folder;
  EXPECT_THAT(reason(folder.path), HasSubstr("no kernel files (*.cuh) in '" + folder.path + "'"));
  folder.write("pointwise.cuh", "#include \"lib/missing.cuh\"\n");
  EXPECT_THAT(reason(folder.path), HasSubstr("no kernel file 'lib/missing.cuh'"));
}

// n / d on the device: the upper half of a multiplication, shifted.
TEST(Divider, IsExactForAllNumbersBelowTwoToThe31) {
  const auto divide = [](std::uint32_t n, std::int64_t word) {
    const auto multiplier = static_cast<std::uint32_t>(word);
    if (multiplier == 0) return n;
    return static_cast<std::uint32_t>(std::uint64_t{n} * multiplier >> 32) >> (word >> 32);
  };
  std::vector<std::int64_t> divisors = {0x7fffffff, 0x7ffffffe, 0x40000000,
                                        0x40000001, 641,        6700417};
  for (std::int64_t d = 1; d < 3000; ++d) divisors.push_back(d);
  for (const std::int64_t d : divisors) {
    const std::int64_t word = divider_word(d);
    for (std::int64_t n : {std::int64_t{0}, d - 1, d, d + 1, 7 * d - 1, 7 * d,
                           std::int64_t{0x7fffffff}, 0x7fffffff / d * d, 0x7fffffff / d * d - 1})
      if (n >= 0 && n <= 0x7fffffff) {
        ASSERT_EQ(divide(static_cast<std::uint32_t>(n), word), static_cast<std::uint32_t>(n / d))
            << n << " / " << d;
      }
  }
}

class Compiling : public testing::Test {
 protected:
  void SetUp() override {
    if (!nvrtc().is_open) GTEST_SKIP() << nvrtc().reason;
    std::string pattern = std::filesystem::temp_directory_path() / "ashlar_cubin_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override {
    if (!directory_.empty()) std::filesystem::remove_all(directory_);
  }
  FileCache disk() const { return FileCache(directory_); }
  std::string directory_;
};

const KernelSource kSmall{"small", "extern \"C\" __global__ void small(float* x) { x[0] += 1; }"};

TEST_F(Compiling, ErrorsCarryTheCompilersWords) {
  try {
    KernelImages(disk()).get({"broken", "__global__ void f() { no_such_name; }"}, "sm_90a");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::internal);
    EXPECT_THAT(error.what(), HasSubstr("no_such_name"));
    EXPECT_THAT(error.what(), HasSubstr("broken"));
  }
}

TEST_F(Compiling, OnceInMemoryAndOnDisk) {
  KernelImages images(disk());
  const auto first = images.get(kSmall, "sm_90a");
  EXPECT_EQ(first->from, KernelImage::From::compiler);
  EXPECT_EQ(images.get(kSmall, "sm_90a"), first);
  KernelImages later(disk());
  const auto again = later.get(kSmall, "sm_90a");
  EXPECT_EQ(again->from, KernelImage::From::cache);
  EXPECT_EQ(again->cubin, first->cubin);
  EXPECT_EQ(again->log, first->log);
  EXPECT_NE(later.get(kSmall, "sm_80")->cubin, first->cubin);
}

TEST_F(Compiling, DamagedEntriesAreMadeAgain) {
  const auto first = KernelImages(disk()).get(kSmall, "sm_90a");
  for (const auto& entry : std::filesystem::directory_iterator(directory_))
    std::filesystem::resize_file(entry.path(), entry.file_size() / 2);
  const auto again = KernelImages(disk()).get(kSmall, "sm_90a");
  EXPECT_EQ(again->from, KernelImage::From::compiler);
  EXPECT_EQ(again->cubin, first->cubin);
}

TEST_F(Compiling, ManyThreadsShareOneCompilation) {
  KernelImages images(disk());
  std::vector<std::shared_ptr<const KernelImage>> results(8);
  std::vector<std::thread> threads;
  for (auto& result : results) threads.emplace_back([&] { result = images.get(kSmall, "sm_90a"); });
  for (std::thread& thread : threads) thread.join();
  for (const auto& result : results) EXPECT_EQ(result, results[0]);
}

TEST(Resources, AreReadFromTheLog) {
  const Resources resources = resources_of(
      "Used 31 registers\nptxas 24 bytes stack frame, 8 bytes spill stores, 16 bytes "
      "spill loads");
  EXPECT_EQ(resources.registers, 31);
  EXPECT_EQ(resources.spilled_bytes, 16);
  EXPECT_EQ(resources.local_bytes, 24);
  EXPECT_EQ(resources_of("").registers, 0);
}

TEST_F(Compiling, TheLogTellsResources) {
  const Resources resources = resources_of(KernelImages(disk()).get(kSmall, "sm_90a")->log);
  if (resources.registers == 0)
    GTEST_SKIP() << nvrtc().path << " does not report registers and spills";
  EXPECT_EQ(resources.spilled_bytes, 0);
}

}  // namespace
}  // namespace ashlar::cuda
