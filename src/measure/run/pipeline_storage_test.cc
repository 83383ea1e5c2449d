#include "measure/run/pipeline_storage.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "base/sizes.h"
#include "base/stored_file.h"
#include "support/loop_device.h"
#include "support/temporary_folder.h"

namespace viaduct::measure::pipeline {
namespace {

using base::kMiB;
using viaduct::testing::TemporaryFolder;

class StorageTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened = Agent::open(Settings{.listen = {}, .backends = {"file"}});
    ASSERT_TRUE(opened) << opened.error().text();
    agent_.emplace(*std::move(opened));
  }
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
  Storage file(const std::string& name) const {
    return {MemoryKind::kFile, "file:" + path(name), path(name)};
  }
  void make(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
  }
  std::string sourceError(const std::string& name, const StorageOptions& options = {}) {
    const auto opened = PinnedStorage::source(*agent_, file(name), options);
    return opened ? "opened" : opened.error().text();
  }
  std::string destinationError(const std::string& name, StorageOptions options = {}) {
    if (options.bytes == 0) options.bytes = 100;
    const auto opened = PinnedStorage::destination(*agent_, file(name), options);
    return opened ? "opened" : opened.error().text();
  }
  bool isEmpty() const { return std::filesystem::is_empty(folder_.path()); }

  TemporaryFolder folder_;
  std::optional<Agent> agent_;
};

void expectHas(const std::string& text, std::initializer_list<std::string> parts) {
  for (const std::string& part : parts) EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST_F(StorageTest, MadeFilesHaveNoName) {
  const auto source =
      PinnedStorage::source(*agent_, file("a"), {.create_source = 3 * kMiB, .seed = 4});
  ASSERT_TRUE(source) << source.error().text();
  const auto destination = PinnedStorage::destination(*agent_, file("b"), {.bytes = 100});
  ASSERT_TRUE(destination) << destination.error().text();
  EXPECT_TRUE(isEmpty());
  EXPECT_TRUE(source->made() && destination->made());
  EXPECT_EQ(source->bytes(), 3 * kMiB);
  EXPECT_EQ(destination->bytes(), 100U);
  EXPECT_NE(source->identity(), destination->identity());
}

TEST_F(StorageTest, AMadeSourceHasThePattern) {
  const auto source =
      PinnedStorage::source(*agent_, file("a"), {.create_source = 3 * kMiB + 5, .seed = 4});
  ASSERT_TRUE(source) << source.error().text();
  const Expected wanted = Expected::pattern({}, 3 * kMiB + 5, 4, PinnedStorage::kSourceEpoch);
  std::uint64_t chunks = 0;
  const auto wrong =
      source->read(*agent_, {}, [&](std::span<std::byte> chunk, std::uint64_t number) {
        EXPECT_EQ(number, chunks++);
        return wanted.verify(chunk, number);
      });
  ASSERT_TRUE(wrong) << wrong.error().text();
  EXPECT_EQ(*wrong, std::nullopt);
  EXPECT_EQ(chunks, 2U);
}

TEST_F(StorageTest, AnExistingSourceIsOnlyRead) {
  make("a", std::string(5000, 'x'));
  const auto before = std::filesystem::last_write_time(path("a"));
  const auto source = PinnedStorage::source(*agent_, file("a"), {.bytes = 4096});
  ASSERT_TRUE(source) << source.error().text();
  EXPECT_EQ(source->bytes(), 4096U) << "its first bytes";
  EXPECT_FALSE(source->made());
  EXPECT_EQ(std::filesystem::last_write_time(path("a")), before);
  EXPECT_EQ(std::filesystem::file_size(path("a")), 5000U);
}

TEST_F(StorageTest, ASourceWithoutASizeGivesAllOfASmallFile) {
  make("a", std::string(5000, 'x'));
  const auto source = PinnedStorage::source(*agent_, file("a"), {});
  ASSERT_TRUE(source) << source.error().text();
  EXPECT_EQ(source->bytes(), 5000U);
}

TEST_F(StorageTest, AWrongSourceIsNamedWithTheRemedy) {
  make("small", "12345");
  make("empty", "");
  std::filesystem::create_directory(path("folder"));
  ::mkfifo(path("fifo").c_str(), 0600);
  expectHas(sourceError("none"),
            {"open the source", path("none"), "No such file", "--create-source SIZE"});
  expectHas(sourceError("folder"), {"it is a folder", path("folder")});
  expectHas(sourceError("fifo"), {"it is no regular file"});
  expectHas(sourceError("empty"), {"it is empty"});
  expectHas(sourceError("small", {.bytes = 6}), {"it has 5 B, fewer than the 6 B"});
  expectHas(sourceError("small", {.create_source = 6}),
            {"the file exists", "omit --create-source"});
  expectHas(sourceError("none/a", {.create_source = 6}), {"open the source", "none/a"});
  expectHas(sourceError("huge", {.create_source = std::uint64_t{1} << 60U}), {"huge", "smaller"});
  EXPECT_FALSE(std::filesystem::exists(path("huge")));
}

TEST_F(StorageTest, AWrongDestinationIsNamedWithTheRemedy) {
  make("old", "12345");
  std::filesystem::create_directory(path("folder"));
  expectHas(destinationError("old"),
            {"open the destination", path("old"), "the file exists", "--overwrite"});
  expectHas(destinationError("folder"), {"it is a folder", path("folder")});
  expectHas(destinationError("folder", {.overwrite = true}), {"it is a folder"});
  expectHas(destinationError("none/b"), {"No such file", "none/b", "existing folder"});
  expectHas(destinationError("huge", {.bytes = std::uint64_t{1} << 60U}), {"huge", "smaller"});
  EXPECT_FALSE(std::filesystem::exists(path("huge")));
  EXPECT_EQ(std::filesystem::file_size(path("old")), 5U);
}

TEST_F(StorageTest, OverwriteTakesAnExistingFileOrMakesOne) {
  make("old", "12345");
  EXPECT_EQ(destinationError("old", {.bytes = 9, .overwrite = true}), "opened");
  EXPECT_EQ(std::filesystem::file_size(path("old")), 9U);
  EXPECT_EQ(destinationError("new", {.bytes = 9, .overwrite = true}), "opened");
  EXPECT_FALSE(std::filesystem::exists(path("new")));
}

// Writing to a device in use would destroy its mounted file system.
TEST_F(StorageTest, ADeviceInUseIsNotOverwritten) {
  make("disk", std::string(kMiB, 'x'));
  const viaduct::testing::LoopDevice device(path("disk"));
  const base::Fd user = base::openStored(device.name(), true);
  if (!user) GTEST_SKIP() << "skipped: no loop device";
  const Storage storage{MemoryKind::kFile, "file:" + device.name(), device.name()};
  const StorageOptions options{.bytes = kMiB, .overwrite = true};
  const auto destination = PinnedStorage::destination(*agent_, storage, options);
  ASSERT_FALSE(destination);
  expectHas(destination.error().text(), {"resource busy", device.name(), "unmount the device"});
  EXPECT_TRUE(PinnedStorage::source(*agent_, storage, options)) << "it may be read";
}

}  // namespace
}  // namespace viaduct::measure::pipeline
