// Kernel bundles: round trips, and errors for damaged files.
#include <ashlar/version.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ashlar/bundle.hpp>
#include <ashlar/error.hpp>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "cuda/jit/bundle.hpp"
#include "cuda/jit/kernel_image.hpp"
#include "cuda/jit/nvrtc.hpp"

namespace ashlar::cuda {
namespace {

using testing::HasSubstr;

class BundleFile : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = std::filesystem::temp_directory_path() / "ashlar_bundle_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::string write(const std::string& name, const std::string& bytes) const {
    const std::string path = directory_ + "/" + name;
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  static std::string why_not(const std::string& path) {
    try {
      Bundle::open(path);
      return "opened";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::io);
      return error.what();
    }
  }
  std::string directory_;
};

const std::vector<PackedItem> kItems = {{"key a", "first", "AAAA"},
                                        {"key b", "second", std::string(1000, 'B')},
                                        {"key c", "third", ""},
                                        {"key b", "second", std::string(1000, 'B')}};

TEST_F(BundleFile, RoundTrip) {
  const Bundle bundle = Bundle::open(write("good.bundle", encode_bundle("sm_90a", kItems)));
  EXPECT_EQ(bundle.architecture(), "sm_90a");
  EXPECT_EQ(bundle.version(), ASHLAR_VERSION);
  EXPECT_EQ(bundle.rows().size(), 3u) << "equal keys share one entry";
  const auto get = [&](const char* key) -> std::optional<std::string> {
    const Bundle::Row* row = bundle.find(FileCache::file_name(key));
    return row != nullptr ? std::optional(bundle.read(*row)) : std::nullopt;
  };
  EXPECT_EQ(get("key a"), "AAAA");
  EXPECT_EQ(get("key b"), std::string(1000, 'B'));
  EXPECT_EQ(get("key c"), "");
  EXPECT_FALSE(get("key d"));
  EXPECT_EQ(Bundle::open(write("empty.bundle", encode_bundle("sm_80", {}))).rows().size(), 0u);
}

TEST_F(BundleFile, WhatIsDamagedIsRefused) {
  const std::string good = encode_bundle("sm_90a", kItems);
  EXPECT_THAT(why_not(directory_ + "/none.bundle"), HasSubstr("No such file"));
  EXPECT_THAT(why_not(directory_), HasSubstr("not a regular file"));
  EXPECT_THAT(why_not(write("a", "")), HasSubstr("not a kernel bundle"));
  EXPECT_THAT(why_not(write("b", std::string(500, 'x'))), HasSubstr("not a kernel bundle"));
  EXPECT_THAT(why_not(write("c", good.substr(0, good.size() - 1))), HasSubstr("damaged"));
  std::string changed = good;
  changed[110] ^= 1;  // corrupts the index
  EXPECT_THAT(why_not(write("d", changed)), HasSubstr("the digest of its index does not match"));

  changed = good;
  changed.back() ^= 1;  // corrupts an entry: the others stay readable
  const std::string path = write("e", changed);
  const Bundle bundle = Bundle::open(path);
  int damaged = 0;
  for (const Bundle::Row& row : bundle.rows()) {
    try {
      bundle.read(row);
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("damaged: the digest of kernel '"));
      ++damaged;
    }
  }
  EXPECT_EQ(damaged, 1);
  EXPECT_THROW(read_bundle(path), Error);

  // A search skips unusable files.
  const Bundles bundles({directory_ + "/none.bundle", directory_ + "/a", directory_ + "/d",
                         write("good.bundle", good)});
  EXPECT_EQ(bundles.count(), 1u);
  EXPECT_EQ(bundles.get("key a"), "AAAA");
}

TEST_F(BundleFile, KernelsComeFromItBeforeAnythingElse) {
  const KernelSource source{"small", "this is no program: nothing could compile it"};
  const KernelImage image{"machine code", "what the compiler said", KernelImage::From::compiler};
  const std::string path =
      write("one.bundle", encode_bundle("sm_90a", {packed(source, "sm_90a", image)}));
  KernelImages images(FileCache(""), Bundles({path}));
  const auto found = images.get(source, "sm_90a");
  EXPECT_EQ(found->from, KernelImage::From::bundle);
  EXPECT_EQ(found->cubin, image.cubin);
  EXPECT_EQ(found->log, image.log);
  EXPECT_THROW(images.get(source, "sm_80"), Error) << "a different architecture";
}

TEST_F(BundleFile, ImagesInMemoryAreBounded) {
  const auto source = [](int i) { return KernelSource{"kernel", "text " + std::to_string(i)}; };
  const KernelImage image{std::string(1000, 'c'), "", KernelImage::From::compiler};
  std::vector<PackedItem> items;
  for (int i = 0; i < 20; ++i) items.push_back(packed(source(i), "sm_90a", image));
  const std::string path = write("many.bundle", encode_bundle("sm_90a", items));
  constexpr std::int64_t kMaxBytes = 5000;
  KernelImages images(FileCache(""), Bundles({path}), kMaxBytes);
  const auto first = images.get(source(0), "sm_90a");
  for (int i = 1; i < 20; ++i) {
    images.get(source(i), "sm_90a");
    EXPECT_LE(images.bytes(), kMaxBytes);
    EXPECT_EQ(images.get(source(0), "sm_90a"), first) << "recently used";
  }
  const auto last = images.get(source(19), "sm_90a");
  EXPECT_EQ(images.get(source(19), "sm_90a"), last);
  const std::weak_ptr<const KernelImage> dropped = images.get(source(1), "sm_90a");
  for (int i = 2; i < 20; ++i) images.get(source(i), "sm_90a");
  EXPECT_TRUE(dropped.expired());
  EXPECT_EQ(images.get(source(1), "sm_90a")->cubin, image.cubin) << "found again";
  // An image beyond the limit is returned all the same.
  KernelImages tiny(FileCache(""), Bundles({path}), 10);
  EXPECT_EQ(tiny.get(source(3), "sm_90a")->cubin, image.cubin);
  EXPECT_EQ(tiny.get(source(4), "sm_90a")->cubin, image.cubin);
}

TEST_F(BundleFile, ThreadsShareBoundedImages) {
  constexpr int kKernels = 12;
  const auto source = [](int i) { return KernelSource{"kernel", "text " + std::to_string(i)}; };
  const auto contents = [](int i) { return std::string(500, static_cast<char>('a' + i)); };
  std::vector<PackedItem> items;
  for (int i = 0; i < kKernels; ++i)
    items.push_back(
        packed(source(i), "sm_90a", KernelImage{contents(i), "", KernelImage::From::compiler}));
  const std::string path = write("threads.bundle", encode_bundle("sm_90a", items));
  KernelImages images(FileCache(""), Bundles({path}), 2000);  // room for three
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::vector<std::shared_ptr<const KernelImage>> held;
      for (int i = 0; i < 400; ++i) {
        const int kernel = (i * (t + 1) + t) % kKernels;
        held.push_back(images.get(source(kernel), "sm_90a"));
        if (held.back()->cubin != contents(kernel)) ++wrong;
        if (held.size() > 5) held.erase(held.begin());
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_LE(images.bytes(), 2000);
}

Graph small_graph() {
  Graph g("small");
  g.output("y", relu(g.input("x", {4, 40}, f32) + g.input("b", {1, 40}, f32)));
  return g;
}

TEST_F(BundleFile, IsMadeWithoutAGpu) {
  if (!nvrtc().is_open) GTEST_SKIP() << nvrtc().reason;
  BundleBuilder builder("sm_90a");
  builder.add(small_graph());
  builder.add(small_graph());
  EXPECT_EQ(builder.kernel_count(), 1);
  EXPECT_EQ(builder.regions_without_kernel(), 0);
  int calls = 0;
  const std::string path = write("made.bundle", builder.build([&](int done, int all) {
    EXPECT_EQ(done, ++calls);
    EXPECT_EQ(all, 1);
  }));
  EXPECT_EQ(calls, 1);
  const BundleContents contents = read_bundle(path);
  EXPECT_EQ(contents.architecture, "sm_90a");
  EXPECT_EQ(contents.version, ASHLAR_VERSION);
  EXPECT_EQ(contents.file_bytes, static_cast<std::int64_t>(std::filesystem::file_size(path)));
  ASSERT_EQ(contents.kernels.size(), 1u);
  EXPECT_GT(contents.kernels[0].bytes, 1000);
}

TEST(BundleBuilder, TakesAllThatTuningTries) {
  BundleBuilder plain("sm_90a"), tuned("sm_90a");
  plain.add(small_graph());
  tuned.add(small_graph(), {.tune = true});
  EXPECT_EQ(plain.kernel_count(), 1);
  EXPECT_GT(tuned.kernel_count(), 1);
}

TEST(BundleBuilder, RefusesWhatItHasNoKernelsFor) {
  EXPECT_THROW(BundleBuilder("sm_12"), Error);
  EXPECT_THROW(BundleBuilder(Device::cpu()), Error);
}

}  // namespace
}  // namespace ashlar::cuda
