// The file cache: integrity, permissions, full disks, concurrency.
#include "base/file_cache.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

namespace ashlar {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

// A temporary directory, removed when the test ends.
class FileCacheTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = fs::temp_directory_path() / "ashlar_cache_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override { fs::remove_all(root_); }

  std::string directory() const { return root_ / "deep" / "er"; }
  fs::path file(const std::string& key) const {
    return fs::path(directory()) / FileCache::file_name(key);
  }
  std::size_t files() const {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& entry : fs::directory_iterator(directory())) ++count;
    return count;
  }
  fs::path root_;
};

TEST_F(FileCacheTest, ReturnsStoredBytes) {
  const FileCache cache(directory());
  EXPECT_EQ(cache.get("key"), std::nullopt);
  const std::string bytes("a\0b\n\xff", 5);
  ASSERT_TRUE(cache.put("key", bytes));
  EXPECT_EQ(cache.get("key"), bytes);
  EXPECT_EQ(cache.get("another"), std::nullopt);
  ASSERT_TRUE(cache.put("key", ""));
  EXPECT_EQ(cache.get("key"), "");
  EXPECT_EQ(FileCache(directory()).get("key"), "");
  EXPECT_EQ(files(), 1u);
}

TEST_F(FileCacheTest, IsPrivateToItsUser) {
  const FileCache cache(directory());
  ASSERT_TRUE(cache.put("key", "value"));
  EXPECT_EQ(fs::status(directory()).permissions(), fs::perms::owner_all);
  EXPECT_EQ(fs::status(file("key")).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  fs::permissions(directory(), fs::perms::all);
  const FileCache open_to_all(directory());
  EXPECT_THAT(open_to_all.refusal(), HasSubstr("writable by other users"));
  EXPECT_EQ(open_to_all.get("key"), std::nullopt);
  EXPECT_FALSE(open_to_all.put("key", "value"));
}

TEST_F(FileCacheTest, AnotherUsersDirectoryIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a directory away";
  fs::create_directories(directory());
  ASSERT_EQ(chown(directory().c_str(), 12345, 12345), 0);
  const FileCache cache(directory());
  EXPECT_THAT(cache.refusal(), HasSubstr("belongs to another user"));
  EXPECT_FALSE(cache.put("key", "value"));
}

TEST_F(FileCacheTest, DamagedEntriesCountAsMissing) {
  const FileCache cache(directory());
  const std::string value(1000, 'v');
  ASSERT_TRUE(cache.put("key", value));
  const auto size = fs::file_size(file("key"));
  for (std::uintmax_t at = 0; at < size; at += 7) {  // one byte changed
    std::fstream stream(file("key"), std::ios::in | std::ios::out | std::ios::binary);
    stream.seekg(static_cast<std::streamoff>(at));
    const auto byte = static_cast<char>(stream.get());
    stream.seekp(static_cast<std::streamoff>(at));
    stream.put(static_cast<char>(byte ^ 0x10));
    stream.close();
    EXPECT_EQ(cache.get("key"), std::nullopt) << at;
    ASSERT_TRUE(cache.put("key", value));
  }
  for (std::uintmax_t length : {size - 1, size / 2, std::uintmax_t{30}, std::uintmax_t{0}}) {
    fs::resize_file(file("key"), length);
    EXPECT_EQ(cache.get("key"), std::nullopt) << length;
  }
  ASSERT_TRUE(cache.put("key", value));
  EXPECT_EQ(cache.get("key"), value);
}

// An entry of another key under this key's file name, as after a digest collision.
TEST_F(FileCacheTest, KeysAreComparedWhole) {
  const FileCache cache(directory());
  ASSERT_TRUE(cache.put("one", "value"));
  fs::rename(file("one"), file("two"));
  EXPECT_EQ(cache.get("two"), std::nullopt);
}

TEST_F(FileCacheTest, FailedWritesAreNotStored) {
  std::ofstream(root_ / "deep") << "a file where a directory should be";
  const FileCache cache(directory());
  EXPECT_FALSE(cache.put("key", "value"));
  EXPECT_EQ(cache.get("key"), std::nullopt);
  const FileCache none("");
  EXPECT_FALSE(none.put("key", "value"));
  EXPECT_EQ(none.get("key"), std::nullopt);
}

// A file size limit of a few bytes stands for a full disk.
TEST_F(FileCacheTest, FullDiskLeavesNothingBehind) {
  const FileCache cache(directory());
  ASSERT_TRUE(cache.put("first", "value"));
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{64, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const bool put = cache.put("second", std::string(10000, 'x'));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_FALSE(put);
  EXPECT_EQ(cache.get("second"), std::nullopt);
  EXPECT_EQ(files(), 1u);
}

TEST_F(FileCacheTest, ManyWritersAndReaders) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([this] {
      const FileCache cache(directory());
      for (int i = 0; i < 50; ++i) {
        const std::string key = "key" + std::to_string(i % 5),
                          value(1000, static_cast<char>(i % 5));
        EXPECT_TRUE(cache.put(key, value));
        EXPECT_EQ(cache.get(key), value);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(files(), 5u);
}

// Four threads miss concurrently: one builds the entry, the others block and then find it.
TEST_F(FileCacheTest, OneProcessBuildsForAll) {
  std::atomic<int> made{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      const FileCache cache(directory());
      const auto turn = cache.lock_for_build("key");
      EXPECT_NE(turn, nullptr);
      if (cache.get("key")) return;
      ++made;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      EXPECT_TRUE(cache.put("key", "value"));
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(made, 1);
  EXPECT_EQ(files(), 1u) << "a lock was left";
  EXPECT_EQ(FileCache("").lock_for_build("key"), nullptr);
}

TEST_F(FileCacheTest, InspectionFindsDamagedEntries) {
  const FileCache cache(directory());
  ASSERT_TRUE(cache.put("one", "bytes\n of one"));
  ASSERT_TRUE(cache.put("two", ""));
  FileCache::Health health = cache.inspect();
  EXPECT_EQ(health.trouble, "");
  EXPECT_EQ(health.entries, 2);
  EXPECT_EQ(health.damaged, std::vector<std::string>());
  EXPECT_EQ(files(), 2u) << "the trial was left";

  fs::resize_file(file("one"), fs::file_size(file("one")) - 1);
  EXPECT_EQ(cache.inspect().damaged, std::vector<std::string>{file("one")});
  fs::resize_file(file("one"), 0);
  EXPECT_EQ(cache.inspect().damaged, std::vector<std::string>{file("one")});
  fs::rename(file("two"), file("one"));  // intact, but under another entry's name
  EXPECT_EQ(cache.inspect().damaged, std::vector<std::string>{file("one")});

  std::ofstream(file("three")) << "ashlar cache entry 1\nof an older version";
  health = cache.inspect();
  EXPECT_EQ(health.entries, 1);
  EXPECT_EQ(health.damaged, std::vector<std::string>{file("one")});

  EXPECT_NE(FileCache("").inspect().trouble, "");
  EXPECT_THAT(FileCache(file("one").string() + "/below").inspect().trouble,
              HasSubstr("Not a directory"));
}

}  // namespace
}  // namespace ashlar
