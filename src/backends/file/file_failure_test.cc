// Files that are missing, full, shrunk or replaced, disks that hang, and agents that end in the
// middle of a transfer.
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <thread>

#include "backends/file/file_mover.h"
#include "backends/file/file_testing.h"
#include "backends/file/mounted_testing.h"
#include "base/fd.h"
#include "core/backend.h"
#include "support/shortage.h"

namespace viaduct::testing {
namespace {

class FileFailure : public FileTest {
 protected:
  void SetUp() override { open(settings()); }
  void expectRefused(const Segment& segment, Code code, const std::string& word) {
    const auto pin = agent_->pin(segment);
    ASSERT_FALSE(pin);
    EXPECT_EQ(pin.error().code, code) << pin.error().text();
    EXPECT_NE(pin.error().text().find(word), std::string::npos) << pin.error().text();
  }
  static void expectError(const Status& status, Code code,
                          std::initializer_list<const char*> words) {
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, code) << status.error().text();
    for (const char* word : words)
      EXPECT_NE(status.error().text().find(word), std::string::npos)
          << word << ": " << status.error().text();
  }
};

TEST_F(FileFailure, ASegmentThatNamesNoUsableFileIsRefused) {
  expectRefused(Segment::file(path("absent")), Code::kNotFound, path("absent"));
  expectRefused(Segment::file(folder_.path()), Code::kInvalid, "folder");
  expectRefused(Segment::file(""), Code::kInvalid, "names no file");
  expectRefused(Segment::file(path("new"), {.bytes = 9, .create = true, .temporary = true}),
                Code::kUnsupported, "only an object can be temporary");
  expectRefused(Segment::file("/dev/null"), Code::kInvalid, "no regular file");
  expectRefused(Segment::file(path("new"), {.create = true}), Code::kInvalid, "has 0 bytes");
  EXPECT_FALSE(std::filesystem::exists(path("new"))) << "a refused file is not left behind";
  make("data", 100);
  expectRefused(Segment::file(path(), {.bytes = 101}), Code::kInvalid, "100 bytes");
  expectRefused(Segment::file(path(), {.offset = 100}), Code::kInvalid, "100 bytes");
  expectRefused(Segment::file(path(), {.offset = ~0ULL, .bytes = 2}), Code::kInvalid, "2^63");
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  expectRefused(Segment::file(path("pipe")), Code::kInvalid, "no regular file");
}

TEST_F(FileFailure, AFileThatShrinksIsAnError) {
  make("data", 4 * kMiB);
  const Pin file = pinned(Segment::file(path()));
  const Pin memory = allocated(4 * kMiB);
  ASSERT_TRUE(read(file, 0, memory, 0, 4 * kMiB));
  ASSERT_EQ(::truncate(path().c_str(), kMiB), 0);
  expectError(read(file, 0, memory, 0, 4 * kMiB), Code::kDevice, {"truncated", path().c_str()});
  expectError(write(file, 0, memory, 0, 4 * kMiB), Code::kDevice, {"truncated"});
  EXPECT_EQ(std::filesystem::file_size(path()), kMiB) << "a write does not extend it again";
}

TEST_F(FileFailure, AFileThatWasReplacedOrRemovedIsAnError) {
  make("data", kMiB);
  const Pin file = pinned(Segment::file(path()));
  const Pin memory = allocated(kMiB);
  make("other", kMiB, 2);
  // One file is replaced before its first use, and one is removed after it.
  ASSERT_EQ(::rename(path("other").c_str(), path().c_str()), 0);
  expectError(read(file, 0, memory, 0, kMiB), Code::kNotFound, {"another file", "replaced"});
  const Pin again = pinned(Segment::file(path()));
  ASSERT_TRUE(read(again, 0, memory, 0, kMiB));
  ASSERT_EQ(::unlink(path().c_str()), 0);
  expectError(read(again, 0, memory, 0, kMiB), Code::kNotFound, {"removed or replaced"});
}

TEST_F(FileFailure, AFileBeyondTheLimitOfTheProcessIsAnErrorAndNoSignal) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{.rlim_cur = kMiB, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  expectRefused(Segment::file(path(), {.bytes = 2 * kMiB, .create = true}), Code::kExhausted,
                "ulimit -f");
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
}

TEST_F(FileFailure, AWriteBeyondTheLimitOfTheProcessIsAnErrorAndNoSignal) {
  make("data", 4 * kMiB);
  for (const char* direct : {"auto", "off"}) {
    Settings with = settings();
    with.others["VIADUCT_FILE_DIRECT"] = direct;
    open(with);
    const Pin file = pinned(Segment::file(path()));
    const Pin memory = allocated(2 * kMiB);
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
    const rlimit small{.rlim_cur = 2 * kMiB, .rlim_max = before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
    const Status below = write(file, 0, memory, 0, 2 * kMiB);
    const Status beyond = write(file, 2 * kMiB, memory, 0, kMiB);
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
    EXPECT_TRUE(below) << below.error().text();
    expectError(beyond, Code::kExhausted, {"ulimit -f"});
  }
}

TEST_F(FileFailure, AThreadThatDoesNotStartIsAnError) {
  make("data", kMiB);
  const Pin file = pinned(Segment::file(path()));
  const Pin memory = allocated(kMiB);
  {
    const ThreadShortage shortage(0);
    expectError(read(file, 0, memory, 0, kMiB), Code::kExhausted, {"start the thread for files"});
  }
  EXPECT_TRUE(read(file, 0, memory, 0, kMiB));
}

TEST_F(FileFailure, ReadOnlyMemoryIsNotReadInto) {
  make("data", 4096);
  const Pin file = pinned(Segment::file(path()));
  std::vector<std::byte> bytes(4096);
  Segment segment = Segment::host(bytes.data(), bytes.size());
  segment.access = MemoryAccess::kReadOnly;
  const Pin memory = pinned(segment);
  expectError(read(file, 0, memory, 0, 4096), Code::kDenied, {});
}

TEST_F(FileFailure, HostMemoryThatWasProtectedIsAnError) {
  make("data", kMiB);
  for (const char* direct : {"auto", "off"}) {
    Settings with = settings();
    with.others["VIADUCT_FILE_DIRECT"] = direct;
    open(with);
    const Pin file = pinned(Segment::file(path()));
    void* const memory =
        ::mmap(nullptr, kMiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const Pin pin = pinned(Segment::host(memory, kMiB));
    ASSERT_EQ(::mprotect(memory, kMiB, PROT_NONE), 0);
    for (const std::uint64_t at : {0U, 1U})
      expectError(read(file, at, pin, 0, kMiB - 1), Code::kDenied, {"unmapped"});
    ::munmap(memory, kMiB);
  }
}

Mounted smallDisk(const std::string& at) { return Mounted(at, "tmpfs", "viaduct-test", "size=4m"); }

TEST_F(FileFailure, AFullDiskIsAnErrorThatNamesTheWrittenBytes) {
  const Mounted disk = smallDisk(path("disk"));
  if (!disk) GTEST_SKIP() << "skipped: no right to mount";
  expectRefused(Segment::file(path("disk/huge"), {.bytes = 8 * kMiB, .create = true}),
                Code::kExhausted, "free room");
  EXPECT_FALSE(std::filesystem::exists(path("disk/huge")));
  // A sparse file finds the full disk only when it is written.
  {
    std::ofstream sparse(path("disk/sparse"));
  }
  ASSERT_EQ(::truncate(path("disk/sparse").c_str(), 8 * kMiB), 0);
  const Pin file = pinned(Segment::file(path("disk/sparse")));
  const Pin memory = allocated(8 * kMiB);
  fillWith(memory.bytes(), std::byte{1});
  expectError(write(file, 0, memory, 0, 8 * kMiB), Code::kExhausted,
              {"disk/sparse", "offset", "of 8388608 bytes had moved"});
  EXPECT_TRUE(path_.shares.empty() || path_.shares[0].way.ends_with("buffered")) << path_.text();
}

TEST_F(FileFailure, AReadOnlyFileSystemCanBeRead) {
  const Mounted disk = smallDisk(path("disk"));
  if (!disk) GTEST_SKIP() << "skipped: no right to mount";
  const auto content = make("disk/data", 4096);
  ASSERT_EQ(::mount("", path("disk").c_str(), "", MS_REMOUNT | MS_RDONLY, ""), 0);
  const Pin file = pinned(Segment::file(path("disk/data")));
  EXPECT_EQ(file.info().access, MemoryAccess::kReadOnly);
  const Pin memory = allocated(4096);
  ASSERT_TRUE(read(file, 0, memory, 0, 4096));
  EXPECT_TRUE(same(memory.bytes(), content));
  expectRefused(Segment::file(path("disk/new"), {.bytes = 4096, .create = true}), Code::kDenied,
                "Read-only");
}

TEST_F(FileFailure, TheTransferOfAReleasedFileEnds) {
  make("data", 64 * kMiB);
  const Pin memory = allocated(64 * kMiB);
  for (int round = 0; round < 5; ++round) {
    std::optional<Pin> file = pinned(Segment::file(path()));
    auto transfer =
        agent_->plan(OpKind::kRead, *self_, part(memory, 0, 64 * kMiB), part(*file, 0, 64 * kMiB));
    ASSERT_TRUE(transfer) << transfer.error().text();
    ASSERT_TRUE(transfer->post());
    const Status released = file->release();
    EXPECT_TRUE(released) << released.error().text();
    const Status waited = transfer->wait();
    EXPECT_TRUE(waited || waited.error().code == Code::kDenied) << waited.error().text();
  }
}

// Only one read is in flight at a time, so that a slow disk ends a cancelled transfer within the
// grace.
TEST_F(FileFailure, ACancelledTransferEnds) {
  Settings with = settings();
  with.others["VIADUCT_FILE_QUEUE_DEPTH"] = "1";
  with.grace = 60s;
  open(with);
  make("data", 16 * kMiB);
  const Pin file = pinned(Segment::file(path()));
  const Pin memory = allocated(16 * kMiB);
  auto transfer =
      agent_->plan(OpKind::kRead, *self_, part(memory, 0, 16 * kMiB), part(file, 0, 16 * kMiB));
  for (int round = 0; round < 10; ++round) {
    ASSERT_TRUE(transfer->post());
    transfer->cancel();
    const Status waited = transfer->wait();
    EXPECT_TRUE(waited || waited.error().code == Code::kCancelled) << waited.error().text();
  }
  ASSERT_TRUE(transfer->post());
  EXPECT_TRUE(transfer->wait());
}

TEST_F(FileFailure, ThreadsThatPostMayEnd) {
  constexpr int kPosts = 50;
  make("data", kPosts * kMiB);
  for (const char* engine : {"auto", "threads"})
    for (const char* direct : {"auto", "off"}) {
      Settings with = settings(engine);
      with.others["VIADUCT_FILE_DIRECT"] = direct;
      open(with);
      const Pin file = pinned(Segment::file(path()));
      const Pin memory = allocated(kPosts * kMiB);
      std::vector<Transfer> transfers;
      for (std::uint64_t i = 0; i < kPosts; ++i)
        transfers.push_back(*agent_->plan(i % 2 == 0 ? OpKind::kRead : OpKind::kWrite, *self_,
                                          part(memory, i * kMiB, kMiB),
                                          part(file, i * kMiB, kMiB)));
      std::vector<std::thread> threads;
      for (Transfer& one : transfers) threads.emplace_back([&one] { EXPECT_TRUE(one.post()); });
      for (std::thread& one : threads) one.join();
      for (Transfer& one : transfers) {
        const Status moved = one.wait();
        EXPECT_TRUE(moved) << moved.error().text();
      }
    }
}

TEST_F(FileFailure, AnAgentClosesInTheMiddleOfTransfers) {
  make("data", 64 * kMiB);
  for (const char* engine : {"auto", "threads"}) {
    open(settings(engine));
    const Pin file = pinned(Segment::file(path()));
    const Pin memory = allocated(64 * kMiB);
    auto transfer =
        agent_->plan(OpKind::kWrite, *self_, part(memory, 0, 64 * kMiB), part(file, 0, 64 * kMiB));
    ASSERT_TRUE(transfer->post());
    agent_->close();
    EXPECT_NE(transfer->state(), TransferState::kRunning);
  }
}

// Forbids io_uring for this process, as containers do.
bool forbidUring() {
  std::array<sock_filter, 4> rules{{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 425 /* io_uring_setup on all machines */, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog program{.len = rules.size(), .filter = rules.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// Runs `body` in a forked child, which has none of this process's threads. Returns the child's exit
// status.
template <class F>
int inChild(F body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = -1;
  ::waitpid(child, &status, 0);
  return status;
}

int readsWithoutUring(const std::string& file, const std::string& engine) {
  if (!forbidUring()) return 77;
  Settings with{.name = "child", .listen = {}, .backends = {"file"}};
  with.others["VIADUCT_FILE_ENGINE"] = engine;
  auto agent = Agent::open(with);
  if (!agent) return 1;
  auto pin = agent->pin(Segment::file(file), "file");
  if (!pin) return pin.error().text().find("VIADUCT_FILE_ENGINE") != std::string::npos ? 2 : 3;
  const auto self = agent->self();
  if (!self->ready(30s) || !self->waitPin("file", 30s)) return 4;
  const auto memory = agent->allocate(pin->size());
  const Selection here{.blocks = *Blocks::strided(
                           {.base = memory->info().address, .bytes = pin->size(), .count = 1})};
  const Selection there{
      .blocks = *Blocks::strided({.base = pin->info().address, .bytes = pin->size(), .count = 1})};
  auto transfer = agent->plan(OpKind::kRead, *self, here, there);
  if (!transfer || !transfer->post() || !transfer->wait()) return 5;
  if (!transfer->path().shares.at(0).way.starts_with("threads")) return 6;
  return same(memory->bytes(), bytesOfFile(file)) ? 0 : 7;
}

TEST(FileWithoutUring, ThreadsReadWhereTheSystemForbidsIt) {
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/data";
  std::ofstream(file) << std::string(3'000'000, 'x');
  const int automatic = inChild([&] { return readsWithoutUring(file, "auto"); });
  if (WIFEXITED(automatic) && WEXITSTATUS(automatic) == 77) GTEST_SKIP() << "skipped: no seccomp";
  EXPECT_EQ(automatic, 0);
  const int named = inChild([&] { return readsWithoutUring(file, "uring"); });
  EXPECT_TRUE(WIFEXITED(named) && WEXITSTATUS(named) == 2) << "the remedy is named: " << named;
}

// Writes the number of each round to all blocks, until the process is killed.
int writesUntilKilled(const std::string& file, int ready) {
  auto agent = Agent::open({.name = "child", .listen = {}, .backends = {"file"}});
  if (!agent) return 1;
  auto pin = agent->pin(Segment::file(file), "file");
  const auto self = agent->self();
  if (!pin || !self->ready(30s) || !self->waitPin("file", 30s)) return 2;
  Pin memory = *agent->allocate(pin->size());
  const auto whole = [](const Pin& one) {
    return Selection{.blocks = *Blocks::strided(
                         {.base = one.info().address, .bytes = 4096, .count = one.size() / 4096})};
  };
  auto transfer = agent->plan(OpKind::kWrite, *self, whole(memory), whole(*pin));
  if (!transfer) return 3;
  for (int round = 1;; ++round) {
    fillWith(memory.bytes(), static_cast<std::byte>(round));
    if (!transfer->post() || !transfer->wait()) return 4;
    if (::write(ready, "x", 1) != 1) return 5;
  }
}

TEST(FileKilled, AWriterLeavesEachBlockOldOrNew) {
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/data";
  constexpr std::size_t kBytes = 8 * kMiB;
  std::ofstream(file) << std::string(kBytes, '\0');
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const base::Fd out(ends[0]);
  base::Fd in(ends[1]);
  const pid_t child = ::fork();
  if (child == 0) ::_exit(writesUntilKilled(file, in.get()));
  in.reset();
  std::array<char, 3> rounds{};
  for (std::size_t got = 0; got < rounds.size();) {
    const ssize_t more = ::read(out.get(), rounds.data() + got, rounds.size() - got);
    ASSERT_GT(more, 0) << "the child has ended early";
    got += static_cast<std::size_t>(more);
  }
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  ::waitpid(child, nullptr, 0);
  const auto content = bytesOfFile(file);
  ASSERT_EQ(content.size(), kBytes);
  for (std::size_t at = 0; at < kBytes; at += 512) {
    const auto sector = std::span(content).subspan(at, 512);
    ASSERT_TRUE(allAre(sector, sector[0])) << "a torn sector at " << at;
  }
}

}  // namespace
}  // namespace viaduct::testing
