// Kernel bundles through the C API.
#include <ashlar/error.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "capi/handles.hpp"
#include "cuda/jit/bundle.hpp"
#include "cuda/jit/nvrtc.hpp"

namespace ashlar {

namespace {

class CApiBundle : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = std::filesystem::temp_directory_path() / "ashlar_capi_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string folder_;
};

BundleBuilderHandle new_builder(const char* architecture) {
  ashlar_bundle_builder* builder = nullptr;
  EXPECT_OK(ashlar_bundle_builder_create(architecture, &builder));
  return BundleBuilderHandle(builder);
}

TEST_F(CApiBundle, IsRead) {
  const std::string path = folder_ + "/one.bundle";
  std::ofstream(path, std::ios::binary)
      << cuda::encode_bundle("sm_90a", {{"key a", "first", "AAAA"}, {"key b", "second", "BB"}});
  ashlar_bundle* raw = nullptr;
  ASSERT_OK(ashlar_bundle_read(path.c_str(), &raw));
  const BundleHandle bundle(raw);
  ashlar_bundle_info info;
  ashlar_bundle_info_init(&info);
  ASSERT_OK(ashlar_bundle_get_info(raw, &info));
  EXPECT_STREQ(info.architecture, "sm_90a");
  EXPECT_STREQ(info.version, ASHLAR_VERSION);
  EXPECT_EQ(info.file_bytes, static_cast<int64_t>(std::filesystem::file_size(path)));
  ASSERT_EQ(info.kernels, 2);
  int64_t sum = 0;
  for (int32_t i = 0; i < info.kernels; ++i) {
    const char* name = nullptr;
    int64_t bytes = 0;
    ASSERT_OK(ashlar_bundle_kernel(raw, i, &name, &bytes));
    EXPECT_EQ(bytes, std::string(name) == "first" ? 4 : 2);
    sum += bytes;
  }
  EXPECT_EQ(sum, 6);
  const char* name = "unchanged";
  int64_t bytes = 0;
  EXPECT_REFUSED(ashlar_bundle_kernel(raw, 2, &name, &bytes), ASHLAR_INVALID_ARGUMENT,
                 "index: got 2, expected 0 to 1");
  EXPECT_STREQ(name, "unchanged");
}

TEST_F(CApiBundle, FilesThatAreNoBundlesAreRefused) {
  ashlar_bundle* bundle = nullptr;
  EXPECT_REFUSED(ashlar_bundle_read((folder_ + "/none").c_str(), &bundle), ASHLAR_IO,
                 "No such file");
  const std::string path = folder_ + "/text";
  std::ofstream(path) << std::string(500, 'x');
  EXPECT_REFUSED(ashlar_bundle_read(path.c_str(), &bundle), ASHLAR_IO, "not a kernel bundle");
  EXPECT_EQ(bundle, nullptr);
}

TEST_F(CApiBundle, CountsTheKernelsOfGraphs) {
  const BundleBuilderHandle builder = new_builder("sm_90a"), tuned = new_builder("sm_90a");
  const GraphHandle graph = matmul_graph(128, 128, 64, ASHLAR_F16);
  EXPECT_OK(ashlar_bundle_builder_add(builder.get(), graph.get(), nullptr));
  ashlar_compile_options options;
  ashlar_compile_options_init(&options);
  options.tune = 1;
  EXPECT_OK(ashlar_bundle_builder_add(tuned.get(), graph.get(), &options));
  int32_t count = 0, more = 0, without = -1;
  EXPECT_OK(ashlar_bundle_builder_kernel_count(builder.get(), &count));
  EXPECT_OK(ashlar_bundle_builder_kernel_count(tuned.get(), &more));
  EXPECT_GE(count, 1);
  EXPECT_GT(more, count);
  EXPECT_OK(ashlar_bundle_builder_regions_without_kernel(builder.get(), &without));
  EXPECT_EQ(without, 0);
  ashlar_bundle_builder* raw = nullptr;
  ASSERT_OK(ashlar_bundle_builder_create_for_device("h200", &raw));
  const BundleBuilderHandle for_device(raw);
  const char* architecture = nullptr;
  EXPECT_OK(ashlar_bundle_builder_architecture(raw, &architecture));
  EXPECT_STREQ(architecture, "sm_90a");
  raw = nullptr;
  EXPECT_REFUSED(ashlar_bundle_builder_create("sm_12", &raw), ASHLAR_INVALID_ARGUMENT,
                 "architecture: got 'sm_12'");
  EXPECT_REFUSED(ashlar_bundle_builder_create_for_device("cpu", &raw), ASHLAR_INVALID_ARGUMENT,
                 "expected a GPU");
  EXPECT_EQ(raw, nullptr);
}

TEST_F(CApiBundle, IsWritten) {
  const BundleBuilderHandle builder = new_builder("sm_90a");
  const std::string path = folder_ + "/made.bundle";
  int calls = 0;
  const auto progress = [](int32_t done, int32_t all, void* context) {
    EXPECT_LE(done, all);
    ++*static_cast<int*>(context);
  };
  // Without a kernel nothing is compiled, so that this works without NVRTC.
  ASSERT_OK(ashlar_bundle_builder_write(builder.get(), path.c_str(), progress, &calls));
  EXPECT_EQ(calls, 0);
  ashlar_bundle* raw = nullptr;
  ASSERT_OK(ashlar_bundle_read(path.c_str(), &raw));
  ashlar_bundle_destroy(raw);
  EXPECT_REFUSED(
      ashlar_bundle_builder_write(builder.get(), (folder_ + "/no/file").c_str(), nullptr, nullptr),
      ASHLAR_IO, "No such file");
  const GraphHandle graph = matmul_graph(128, 128, 64, ASHLAR_F16);
  EXPECT_OK(ashlar_bundle_builder_add(builder.get(), graph.get(), nullptr));
  if (cuda::nvrtc().is_open) {
    EXPECT_OK(ashlar_bundle_builder_write(builder.get(), path.c_str(), progress, &calls));
    EXPECT_GE(calls, 1);
  } else {
    EXPECT_REFUSED(ashlar_bundle_builder_write(builder.get(), path.c_str(), progress, &calls),
                   ASHLAR_DEVICE, "NVRTC");
  }
}

}  // namespace

}  // namespace ashlar
