// Files as segments of an agent: reads, writes, alignment, and many files.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "backends/file/file_testing.h"
#include "base/fd.h"
#include "base/random.h"

namespace viaduct::testing {
namespace {

// A parameter of the tests: one of both engines, with or without the page cache.
struct Way {
  std::string engine, direct;
};
class FileMoves : public FileTest, public ::testing::WithParamInterface<Way> {
 protected:
  void SetUp() override {
    Settings with = settings(GetParam().engine);
    with.others["VIADUCT_FILE_DIRECT"] = GetParam().direct;
    with.others["VIADUCT_FILE_QUEUE_DEPTH"] = "8";
    open(with);
  }
  // Skips where the system refuses io_uring.
  std::optional<Pin> pinnedOrSkipped(const Segment& segment) {
    auto pin = agent_->pin(segment, "first");
    if (!pin && pin.error().operation == "io_uring_setup") return std::nullopt;
    EXPECT_TRUE(pin) << pin.error().text();
    EXPECT_TRUE(self_->waitPin("first", 30s));
    return *std::move(pin);
  }
};

#define VIADUCT_PIN_OR_SKIP(name, segment)                                \
  auto name##_or = pinnedOrSkipped(segment);                              \
  if (!name##_or) GTEST_SKIP() << "skipped: the system refuses io_uring"; \
  Pin& name = *name##_or

TEST_P(FileMoves, ReadsAFile) {
  const auto content = make("data", 5 * kMiB + 123);
  VIADUCT_PIN_OR_SKIP(file, Segment::file(path()));
  EXPECT_EQ(file.info().kind, MemoryKind::kFile);
  EXPECT_EQ(file.size(), content.size());
  EXPECT_EQ(file.data(), nullptr);
  const Pin memory = allocated(content.size());
  const Status moved = read(file, 0, memory, 0, content.size());
  ASSERT_TRUE(moved) << moved.error().text();
  EXPECT_TRUE(same(memory.bytes(), content));
  ASSERT_EQ(path_.shares.size(), 1U);
  EXPECT_EQ(path_.shares[0].backend, "file");
  EXPECT_TRUE(path_.shares[0].way.starts_with(GetParam().engine)) << path_.text();
  if (GetParam().direct == "off") {
    EXPECT_TRUE(path_.shares[0].way.ends_with(" buffered")) << path_.text();
  }
  EXPECT_EQ(path_.shares[0].bytes, content.size());
}

TEST_P(FileMoves, WritesASlabOfBlocksInOneRun) {
  constexpr std::uint64_t kBlock = 16 << 10U, kCount = 200;
  VIADUCT_PIN_OR_SKIP(file, Segment::file(path(), {.bytes = kBlock * kCount, .create = true}));
  Pin memory = allocated(kBlock * kCount);
  fillRandom(memory.bytes(), 5);
  const auto blocks = [&](const Pin& pin) {
    return *Blocks::strided({.base = pin.info().address, .bytes = kBlock, .count = kCount});
  };
  Indices order(kCount);
  for (std::uint32_t i = 0; i < kCount; ++i)
    order[i] = static_cast<std::uint32_t>((i * 37 + 11) % kCount);
  const Status moved =
      run(OpKind::kWrite, {.blocks = blocks(memory)}, {.blocks = blocks(file), .indices = order});
  ASSERT_TRUE(moved) << moved.error().text();
  const auto content = bytesOfFile(path());
  ASSERT_EQ(content.size(), kBlock * kCount);
  for (std::uint32_t i = 0; i < kCount; ++i)
    EXPECT_TRUE(same(std::span(content).subspan(order[i] * kBlock, kBlock),
                     memory.bytes().subspan(i * kBlock, kBlock)))
        << i;
}

TEST_P(FileMoves, MovesTheOtherWayRoundAsWell) {
  const auto content = make("data", kMiB);
  VIADUCT_PIN_OR_SKIP(file, Segment::file(path()));
  Pin memory = allocated(kMiB);
  // A write from the file, and a read into it.
  Status moved = run(OpKind::kWrite, part(file, 0, kMiB), part(memory, 0, kMiB));
  ASSERT_TRUE(moved) << moved.error().text();
  EXPECT_TRUE(same(memory.bytes(), content));
  fillRandom(memory.bytes(), 9);
  moved = run(OpKind::kRead, part(file, 0, kMiB), part(memory, 0, kMiB));
  ASSERT_TRUE(moved) << moved.error().text();
  EXPECT_TRUE(same(memory.bytes(), bytesOfFile(path())));
}

// Many ops of one transfer share blocks of the file, and no byte between them changes.
TEST_P(FileMoves, OpsOfAnyAlignmentChangeTheirBytesOnly) {
  constexpr std::uint64_t kBytes = 2 * kMiB + 77;
  auto model = make("data", kBytes);
  VIADUCT_PIN_OR_SKIP(file, Segment::file(path()));
  Pin memory = allocated(2 * kBytes);
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    base::Random random(seed);
    fillRandom(memory.bytes(), seed + 100);
    std::vector<Extent> here, there;
    std::uint64_t from = random.below(100);
    for (std::uint64_t at = random.below(5000); at < kBytes;) {
      const std::uint64_t most = random.chance(0.1) ? 300'000 : 9000;
      const std::uint64_t bytes = std::min(kBytes - at, 1 + random.below(most));
      here.push_back({memory.info().address + from, bytes});
      there.push_back({file.info().address + at, bytes});
      std::memcpy(model.data() + at, memory.data() + from, bytes);
      from += bytes + random.below(64);
      at += bytes + (random.chance(0.5) ? random.below(3000) : 0);
    }
    const Status moved =
        run(OpKind::kWrite, {.blocks = *Blocks::list(here)}, {.blocks = *Blocks::list(there)});
    ASSERT_TRUE(moved) << moved.error().text();
    EXPECT_TRUE(same(bytesOfFile(path()), model)) << "seed " << seed;
    fillWith(memory.bytes(), std::byte{0});
    const std::uint64_t at = random.below(kBytes), bytes = 1 + random.below(kBytes - at);
    ASSERT_TRUE(read(file, at, memory, 3, std::min(bytes, kBytes - 3)));
    EXPECT_TRUE(same(memory.bytes().subspan(3, std::min(bytes, kBytes - 3)),
                     std::span(model).subspan(at, std::min(bytes, kBytes - 3))));
  }
}

TEST_P(FileMoves, SeveralTransfersAtOnceMoveAllBytes) {
  constexpr int kFiles = 8;
  constexpr std::uint64_t kBytes = 3 * kMiB;
  std::vector<Pin> files;
  VIADUCT_PIN_OR_SKIP(first, Segment::file(path("0"), {.bytes = kBytes, .create = true}));
  files.push_back(std::move(first));
  for (int i = 1; i < kFiles; ++i)
    files.push_back(
        pinned(Segment::file(path(std::to_string(i)), {.bytes = kBytes, .create = true})));
  Pin memory = allocated(kBytes * kFiles);
  fillRandom(memory.bytes(), 3);
  std::vector<Transfer> transfers;
  for (int i = 0; i < kFiles; ++i)
    transfers.push_back(*agent_->plan(OpKind::kWrite, *self_,
                                      part(memory, static_cast<std::uint64_t>(i) * kBytes, kBytes),
                                      part(files[static_cast<std::size_t>(i)], 0, kBytes)));
  for (int round = 0; round < 3; ++round) {
    for (Transfer& one : transfers) ASSERT_TRUE(one.post());
    for (Transfer& one : transfers) {
      const Status moved = one.wait();
      ASSERT_TRUE(moved) << moved.error().text();
    }
  }
  for (int i = 0; i < kFiles; ++i)
    EXPECT_TRUE(same(bytesOfFile(path(std::to_string(i))),
                     memory.bytes().subspan(static_cast<std::uint64_t>(i) * kBytes, kBytes)));
}

INSTANTIATE_TEST_SUITE_P(Ways, FileMoves,
                         ::testing::Values(Way{"uring", "auto"}, Way{"uring", "off"},
                                           Way{"threads", "auto"}, Way{"threads", "off"}),
                         [](const auto& one) {
                           return one.param.engine + (one.param.direct == "off" ? "Buffered" : "");
                         });

class FilePins : public FileTest {
 protected:
  void SetUp() override { open(settings()); }
};

TEST_F(FilePins, OfAPartHaveItsBytesOnly) {
  const auto content = make("data", 100'000);
  const Pin file = pinned(Segment::file(path(), {.offset = 1000, .bytes = 50'000}));
  EXPECT_EQ(file.size(), 50'000U);
  const Pin memory = allocated(50'000);
  ASSERT_TRUE(read(file, 0, memory, 0, 50'000));
  EXPECT_TRUE(same(memory.bytes(), std::span(content).subspan(1000, 50'000)));
  const auto beyond =
      agent_->plan(OpKind::kRead, *self_, part(memory, 0, 100), part(file, 49'950, 100));
  EXPECT_FALSE(beyond);
}

TEST_F(FilePins, OfADescriptorNeedNoName) {
  const auto content = make("data", 10'000);
  base::Fd fd(::open(path().c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_TRUE(fd);
  const Pin file = pinned(Segment::file(fd.get()));
  fd.reset();
  ASSERT_EQ(::unlink(path().c_str()), 0);
  const Pin memory = allocated(10'000);
  const Status moved = read(file, 0, memory, 0, 10'000);
  ASSERT_TRUE(moved) << moved.error().text();
  EXPECT_TRUE(same(memory.bytes(), content));
}

// Returns how many descriptors of this process name the file, with these flags.
int openedFor(const std::string& path, int flags) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code failed;
    const auto link = std::filesystem::read_symlink(entry.path(), failed);
    const int fd = std::stoi(entry.path().filename());
    if (!failed && link == path && (::fcntl(fd, F_GETFL) & flags) == flags) ++count;
  }
  return count;
}

TEST_F(FilePins, OfABorrowedDescriptorKeepNoDuplicate) {
  const auto content = make("data", 10'000);
  base::Fd fd(::open(path().c_str(), O_RDWR | O_CLOEXEC));
  const Pin file = pinned(Segment::file(fd.get(), {.borrow = true}));
  EXPECT_EQ(openedFor(path(), 0), 1);
  const Pin memory = allocated(10'000);
  ASSERT_EQ(::unlink(path().c_str()), 0);
  const Status moved = read(file, 0, memory, 0, 10'000);
  ASSERT_TRUE(moved) << moved.error().text();
  EXPECT_TRUE(same(memory.bytes(), content));
}

TEST_F(FilePins, OfABorrowedDescriptorThatWasClosedReachNoOtherFile) {
  make("data", 10'000);
  const auto other = make("other", 10'000, 2);
  base::Fd fd(::open(path().c_str(), O_RDWR | O_CLOEXEC));
  const int number = fd.get();
  const Pin file = pinned(Segment::file(number, {.borrow = true}));
  const Pin memory = allocated(10'000);
  const base::Fd opened(::open(path("other").c_str(), O_RDWR | O_CLOEXEC));
  fd.reset();
  ASSERT_FALSE(write(file, 0, memory, 0, 10'000));
  fd.reset(::dup2(opened.get(), number));
  const Status moved = write(file, 0, memory, 0, 10'000);
  ASSERT_FALSE(moved);
  EXPECT_EQ(moved.error().code, Code::kNotFound);
  EXPECT_TRUE(same(bytesOfFile(path("other")), other));
}

TEST_F(FilePins, ThatSyncOpenTheFileSo) {
  // The pins live until the end: the mover closes the files of released pins later.
  for (const char* const name : {"plain", "synced", "given"}) make(name, 10'000);
  const Pin memory = allocated(10'000);
  const auto writes = [&](const Pin& file) {
    const Status moved = write(file, 0, memory, 0, 10'000);
    EXPECT_TRUE(moved) << moved.error().text();
  };
  const Pin plain = pinned(Segment::file(path("plain")));
  writes(plain);
  EXPECT_EQ(openedFor(path("plain"), O_SYNC), 0);
  const Pin synced = pinned(Segment::file(path("synced"), {.sync = true}));
  writes(synced);
  EXPECT_EQ(openedFor(path("synced"), O_RDWR | O_SYNC), 1);
  base::Fd fd(::open(path("given").c_str(), O_RDWR | O_SYNC | O_CLOEXEC));
  const Pin given = pinned(Segment::file(fd.get()));
  fd.reset();
  writes(given);
  EXPECT_EQ(openedFor(path("given"), O_RDWR | O_SYNC), 2)
      << "the duplicate, and the one that writes";
}

TEST_F(FilePins, OfAReadOnlyDescriptorAreReadOnly) {
  make("data", 10'000);
  const base::Fd fd(::open(path().c_str(), O_RDONLY | O_CLOEXEC));
  const Pin file = pinned(Segment::file(fd.get()));
  EXPECT_EQ(file.info().access, MemoryAccess::kReadOnly);
  const Pin memory = allocated(10'000);
  EXPECT_TRUE(read(file, 0, memory, 0, 10'000));
  const Status refused = write(file, 0, memory, 0, 10'000);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kDenied);
}

TEST_F(FilePins, ExtendAFileThatIsShorter) {
  const auto content = make("data", 1000);
  const Pin file = pinned(Segment::file(path(), {.bytes = 100'000, .create = true}));
  EXPECT_EQ(file.size(), 100'000U);
  const Pin memory = allocated(100'000);
  ASSERT_TRUE(read(file, 0, memory, 0, 100'000));
  EXPECT_TRUE(same(memory.bytes().first(1000), content));
  EXPECT_TRUE(allAre(memory.bytes().subspan(1000), std::byte{0}));
}

// Each pin holds no descriptor of its own.
TEST_F(FilePins, OfTenThousandFilesNeedFewDescriptors) {
  constexpr std::uint32_t kFiles = 10'000;
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{.rlim_cur = 256, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  open(settings());
  Pin memory = allocated(kFiles * 512ULL);
  fillRandom(memory.bytes(), 17);
  std::vector<Pin> files;
  std::vector<Extent> extents;
  for (std::uint32_t i = 0; i < kFiles; ++i) {
    auto pin =
        agent_->pin(Segment::file(path("f" + std::to_string(i)), {.bytes = 512, .create = true}));
    ASSERT_TRUE(pin) << i << ": " << pin.error().text();
    files.push_back(*std::move(pin));
    extents.push_back({files.back().info().address, 512});
  }
  const auto there = Blocks::list(extents);
  const auto here = Blocks::strided({.base = memory.info().address, .bytes = 512, .count = kFiles});
  ASSERT_TRUE(there && here);
  // The memory's pin is in the list too, so it gets one entry more than kFiles.
  const auto until = std::chrono::steady_clock::now() + 60s;
  while (self_->pins().size() <= kFiles && std::chrono::steady_clock::now() < until) agent_->poll();
  Status moved = run(OpKind::kWrite, {.blocks = *here}, {.blocks = *there});
  ASSERT_TRUE(moved) << moved.error().text();
  fillWith(memory.bytes(), std::byte{0});
  moved = run(OpKind::kRead, {.blocks = *here}, {.blocks = *there});
  ASSERT_TRUE(moved) << moved.error().text();
  std::vector<std::byte> expected(memory.size());
  fillRandom(expected, 17);
  EXPECT_TRUE(same(memory.bytes(), expected));
  files.clear();
  self_.reset();
  agent_.reset();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

// The thread that opens the file is the only one that is started.
TEST_F(FilePins, NeedOneThreadAtMostIfTheirReadsBypassThePageCache) {
  const auto threads = [] {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& one : std::filesystem::directory_iterator("/proc/self/task"))
      ++count;
    return count;
  };
  const std::size_t before = threads();
  make("data", kMiB);
  const Pin file = pinned(Segment::file(path()));
  EXPECT_EQ(threads(), before);
  const Pin memory = allocated(kMiB);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(read(file, 0, memory, 0, kMiB));
  if (path_.shares.at(0).way != "uring") GTEST_SKIP() << "skipped: no O_DIRECT or no io_uring";
  EXPECT_EQ(threads(), before + 1);
}

TEST_F(FilePins, AreReachedByOtherAgentsOnlyInStages) {
  make("data", 8192);
  const Pin file = pinned(Segment::file(path()));
  Agent other = *Agent::open({.name = "other", .listen = {}, .backends = {"file", "local"}});
  const Peer owner = *other.importCard(agent_->exportCard());
  ASSERT_TRUE(owner.ready(30s));
  const Pin memory = *other.allocate(8192);
  const auto plan = other.plan(OpKind::kRead, owner, part(memory, 0, 8192), part(file, 0, 8192),
                               {.require = "no-staging"});
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code, Code::kUnsupported);
}

}  // namespace
}  // namespace viaduct::testing
