// The local backend between processes: every way, every refusal, and processes that are stopped or
// killed in the middle.
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "backends/local/gate.h"
#include "backends/local/message.h"
#include "backends/local/process_pair_testing.h"
#include "base/random.h"
#include "base/shared_memory.h"

namespace viaduct::local::testing {
namespace {

using base::SharedMemory;
using core::Op;

constexpr std::uint64_t kBytes = std::uint64_t{4} << 20U;
constexpr std::uint32_t kHere = 1, kThere = 2;
constexpr std::byte kMark{0xa5};

Settings settings(std::uint32_t threads = 2) {
  Settings settings;
  settings.copy_threads = threads;
  settings.grace = std::chrono::milliseconds(100);
  return settings;
}

// Memory of either sort, as the ways differ by it.
struct Memory {
  explicit Memory(bool shared) {
    if (shared)
      memfd = *SharedMemory::allocate(kBytes);
    else
      plain.resize(kBytes);
  }
  std::span<std::byte> bytes() { return memfd ? memfd.bytes() : std::span(plain); }
  Segment segment() { return memfd ? memfd.segment() : Segment::host(plain.data(), kBytes); }
  void fill(std::uint64_t seed) {
    base::Random random(seed);
    for (std::size_t i = 0; i < kBytes; i += 8) {
      const std::uint64_t word = random.next();
      std::memcpy(bytes().data() + i, &word, 8);
    }
  }
  void mark() { std::ranges::fill(bytes(), kMark); }
  bool marked() { return std::ranges::count(bytes(), kMark) == static_cast<long>(kBytes); }

  SharedMemory memfd;
  std::vector<std::byte> plain;
};

std::uint64_t sum(std::span<const std::byte> bytes) {
  std::uint64_t sum = 14695981039346656037U;
  for (const std::byte byte : bytes)
    sum = (sum ^ std::to_integer<std::uint64_t>(byte)) * 1099511628211U;
  return sum;
}

// All of the memory in pieces of `random` lengths up to `longest`, in random order.
std::vector<Op> pieces(std::uint64_t here, std::uint64_t there, std::uint64_t longest,
                       std::uint64_t seed) {
  base::Random random(seed);
  std::vector<Op> ops;
  for (std::uint64_t at = 0; at < kBytes;) {
    const std::uint64_t bytes = std::min(1 + random.below(longest), kBytes - at);
    ops.push_back({here + at, there + at, bytes, kHere, kThere});
    at += bytes;
  }
  std::shuffle(ops.begin(), ops.end(), std::mt19937_64(seed));
  return ops;
}

std::vector<Op> whole(std::span<std::byte> here, std::uint64_t there, std::uint64_t each = 4096) {
  std::vector<Op> ops;
  for (std::uint64_t at = 0; at < kBytes; at += each)
    ops.push_back(
        {reinterpret_cast<std::uintptr_t>(here.data()) + at, there + at, each, kHere, kThere});
  return ops;
}

// Owns memory of one sort and answers "sum" and "fill" until told to end.
bool own(int socket, int pid, bool shared) {
  Station station(socket, pid, settings());
  Memory memory(shared);
  station.pin(kThere, memory.segment());
  while (station.run([&] { return !station.said.empty(); })) {
    const std::string what = station.said.front();
    station.said.pop_front();
    if (what == "end") return true;
    if (what == "sum") station.say(std::to_string(sum(memory.bytes())));
    if (what == "fill") memory.fill(77), station.say("filled");
    if (what == "unpin") station.say(station.backend().unpin(kThere) ? "unpinned" : "stuck");
    if (what == "unmap") ::munmap(memory.bytes().data(), kBytes), station.say("unmapped");
  }
  return false;
}

class EveryWay : public ::testing::TestWithParam<bool> {
 protected:
  bool shared() const { return GetParam(); }
  std::string_view way() const { return shared() ? "mapped" : "cma"; }
};
INSTANTIATE_TEST_SUITE_P(Local, EveryWay, ::testing::Bool(),
                         [](const auto& param) { return param.param ? "mapped" : "cma"; });

TEST_P(EveryWay, MovesScatteredUnequalAndHugeBlocksBothWays) {
  const bool sort = shared();
  Child child([=](int socket, int pid) { return own(socket, pid, sort); });
  Station station(child.socket(), child.pid(), settings());
  Memory memory(shared());
  ASSERT_TRUE(station.backend().pin(kHere, memory.segment()));
  ASSERT_TRUE(station.ready()) << station.link().state().text;
  ASSERT_EQ(station.link().state().text, "mapped, cma");
  ASSERT_TRUE(station.reaches(kHere, kThere, way()));
  const auto here = reinterpret_cast<std::uintptr_t>(memory.bytes().data());
  const std::uint64_t there = station.pins.front().info.address;
  for (const std::uint64_t longest : {std::uint64_t{3000}, std::uint64_t{700'000}, kBytes}) {
    memory.fill(longest);
    const auto ops = pieces(here, there, longest, longest);
    const auto error = station.move(OpKind::kWrite, ops);
    ASSERT_FALSE(error) << error->text();
    station.say("sum");
    ASSERT_TRUE(station.hears(std::to_string(sum(memory.bytes()))));
    station.say("fill");
    ASSERT_TRUE(station.hears("filled"));
    ASSERT_FALSE(station.move(OpKind::kRead, ops));
    const std::uint64_t read = sum(memory.bytes());
    memory.fill(77);
    ASSERT_EQ(read, sum(memory.bytes()));
  }
  station.say("end");
  EXPECT_EQ(child.exitCode(), 0);
}

TEST_P(EveryWay, WithdrawnMemoryIsRefused) {
  const bool sort = shared();
  Child child([=](int socket, int pid) { return own(socket, pid, sort); });
  Station station(child.socket(), child.pid(), settings());
  Memory memory(shared());
  ASSERT_TRUE(station.backend().pin(kHere, memory.segment()));
  ASSERT_TRUE(station.reaches(kHere, kThere, way()));
  const auto ops = whole(memory.bytes(), station.pins.front().info.address);
  ASSERT_FALSE(station.move(OpKind::kWrite, ops));
  station.say("sum");
  ASSERT_TRUE(station.hears(std::to_string(sum(memory.bytes()))));
  const std::string before = std::to_string(sum(memory.bytes()));
  station.say("unpin");
  ASSERT_TRUE(station.hears("unpinned"));
  memory.fill(5);
  const auto error = station.move(OpKind::kWrite, ops);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, Code::kDenied);
  station.say("sum");
  EXPECT_TRUE(station.hears(before));
}

// Writes all of the parent's memory again and again, until a post fails.
bool writeForEver(int socket, int pid, bool shared, std::uint64_t each, std::uint32_t threads) {
  Station station(socket, pid, settings(threads));
  Memory memory(shared);
  if (!station.backend().pin(kHere, memory.segment())) return false;
  if (!station.reaches(kHere, kThere, shared ? "mapped" : "cma")) return false;
  const auto ops = whole(memory.bytes(), station.pins.front().info.address, each);
  station.say("writing");
  while (true)
    if (const auto error = station.move(OpKind::kWrite, ops)) {
      station.say(codeName(error->code));
      return station.hears("end");
    }
}

TEST_P(EveryWay, UnpinDuringTrafficFromAnotherProcess) {
  const bool sort = shared();
  Child child([=](int socket, int pid) { return writeForEver(socket, pid, sort, 4096, 2); });
  Station station(child.socket(), child.pid(), settings());
  Memory memory(shared());
  station.pin(kThere, memory.segment());
  ASSERT_TRUE(station.hears("writing"));
  ASSERT_TRUE(station.run([&] { return memory.bytes()[0] == std::byte{0}; }));
  memory.mark();
  ASSERT_TRUE(station.run([&] { return memory.bytes()[kBytes / 2] != kMark; }));  // it is at it
  const Status unpinned = station.backend().unpin(kThere);
  ASSERT_TRUE(unpinned) << unpinned.error().text();
  memory.mark();
  ASSERT_TRUE(station.hears(codeName(Code::kDenied)));
  EXPECT_TRUE(memory.marked());
  station.say("end");
  EXPECT_EQ(child.exitCode(), 0);
}

TEST_P(EveryWay, APeerStoppedBetweenChunksNeverWritesAgain) {
  const bool sort = shared();
  Child child([=](int socket, int pid) {
    Station station(socket, pid, settings(1));  // copies only inside poll()
    Memory memory(sort);
    if (!station.backend().pin(kHere, memory.segment())) return false;
    if (!station.reaches(kHere, kThere, sort ? "mapped" : "cma")) return false;
    std::vector<Op> ops;
    for (int i = 0; i < 1000; ++i)
      std::ranges::copy(whole(memory.bytes(), station.pins.front().info.address, kBytes),
                        std::back_inserter(ops));
    if (station.post(OpKind::kWrite, ops) != ops.size()) return false;
    station.rail().poll(station.done);
    if (!station.done.empty()) return false;  // the work is half done, no chunk is
    ::raise(SIGSTOP);
    if (!station.run([&] { return !station.done.empty(); })) return false;
    const auto* failed = std::get_if<core::Failed>(&station.done.front());
    station.say(failed != nullptr ? codeName(failed->why.code) : "moved");
    return station.hears("end");
  });
  Station station(child.socket(), child.pid(), settings());
  Memory memory(shared());
  memory.mark();
  station.pin(kThere, memory.segment());
  ASSERT_TRUE(station.ready());
  ASSERT_TRUE(child.stopped());
  EXPECT_FALSE(memory.marked());
  core::Completions out;
  station.link().close(out);
  EXPECT_TRUE(station.link().settled());
  EXPECT_TRUE(station.backend().unpin(kThere));
  memory.mark();
  child.signal(SIGCONT);
  ASSERT_TRUE(station.hears(codeName(Code::kPeerLost)));
  EXPECT_TRUE(memory.marked());
  station.say("end");
  EXPECT_EQ(child.exitCode(), 0);
}

TEST_P(EveryWay, APeerStoppedAnywhereIsSettledOrSaidNotToBe) {
  for (int round = 0; round < 10; ++round) {
    const bool sort = shared();
    Child child([=](int socket, int pid) { return writeForEver(socket, pid, sort, 65536, 2); });
    Station station(child.socket(), child.pid(), settings());
    Memory memory(shared());
    memory.mark();
    station.pin(kThere, memory.segment());
    ASSERT_TRUE(station.hears("writing"));
    ASSERT_TRUE(station.run([&] { return memory.bytes()[kBytes - 1] != kMark; }));
    child.signal(SIGSTOP);
    ASSERT_TRUE(child.stopped());
    core::Completions out;
    station.link().close(out);
    const bool at_once = station.link().settled();
    if (at_once) memory.mark();
    child.signal(SIGCONT);
    ASSERT_TRUE(station.run([&] { return station.link().settled(); }));
    if (!at_once) memory.mark();
    ASSERT_TRUE(station.hears(codeName(Code::kPeerLost)));
    ASSERT_TRUE(memory.marked()) << "round " << round << (at_once ? " between" : " inside");
    station.say("end");
    ASSERT_EQ(child.exitCode(), 0);
  }
}

TEST_P(EveryWay, AKilledWriterSettles) {
  const bool sort = shared();
  Child child([=](int socket, int pid) { return writeForEver(socket, pid, sort, kBytes, 2); });
  Station station(child.socket(), child.pid(), settings());
  Memory memory(shared());
  memory.mark();
  station.pin(kThere, memory.segment());
  ASSERT_TRUE(station.hears("writing"));
  ASSERT_TRUE(station.run([&] { return memory.bytes()[0] != kMark; }));
  child.signal(SIGKILL);
  core::Completions out;
  station.link().close(out);
  EXPECT_TRUE(station.run([&] { return station.link().settled(); }));
  EXPECT_EQ(child.exitCode(), -1);  // and reaped: nothing of it is left
  EXPECT_TRUE(station.link().settled());
  EXPECT_TRUE(station.backend().unpin(kThere));
  memory.mark();
  EXPECT_TRUE(memory.marked());
}

TEST_P(EveryWay, AKilledOwnerDoesNotHarmTheWriter) {
  const bool sort = shared();
  Child child([=](int socket, int pid) { return own(socket, pid, sort); });
  Station station(child.socket(), child.pid(), settings());
  Memory memory(shared());
  ASSERT_TRUE(station.backend().pin(kHere, memory.segment()));
  ASSERT_TRUE(station.reaches(kHere, kThere, way()));
  const auto ops = whole(memory.bytes(), station.pins.front().info.address);
  ASSERT_FALSE(station.move(OpKind::kWrite, ops));
  child.signal(SIGKILL);
  ASSERT_EQ(child.exitCode(), -1);
  const auto error = station.move(OpKind::kWrite, ops);
  if (shared()) {
    EXPECT_FALSE(error);  // the memory outlives its owner; the session tells of the death
  } else {
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code, Code::kPeerLost) << error->text();
  }
}

TEST(LocalProcess, RegistrationsMayShareAMemfd) {
  Child child([](int socket, int pid) {
    Station station(socket, pid, settings());
    Memory memory(true);
    Segment first = memory.segment(), second = first;
    first.bytes = second.bytes = kBytes / 2;
    second.address += kBytes / 2;
    second.fd_offset = kBytes / 2;
    station.pin(8, first);
    station.pin(9, second);
    if (!station.hears("unpin")) return false;
    if (!station.backend().unpin(8)) return false;
    station.say("unpinned");
    if (!station.hears("look")) return false;
    return memory.bytes()[kBytes / 2 + 5] == std::byte{42} && station.backend().unpin(9);
  });
  Station station(child.socket(), child.pid(), settings());
  std::vector<std::byte> small(8, std::byte{42});
  ASSERT_TRUE(station.backend().pin(kHere, Segment::host(small.data(), 8)));
  ASSERT_TRUE(station.reaches(kHere, 8, "mapped"));
  ASSERT_TRUE(station.reaches(kHere, 9, "mapped"));
  station.say("unpin");
  ASSERT_TRUE(station.hears("unpinned"));
  const auto from = reinterpret_cast<std::uintptr_t>(small.data());
  Op op{from, station.pins[0].info.address, 1, kHere, 8};
  EXPECT_TRUE(station.move(OpKind::kWrite, {&op, 1}));
  op = {from, station.pins[1].info.address + 5, 1, kHere, 9};
  EXPECT_FALSE(station.move(OpKind::kWrite, {&op, 1}));
  station.say("look");
  EXPECT_EQ(child.exitCode(), 0);
}

TEST(LocalProcess, AMemfdThatCouldShrinkIsReachedAsPlainMemory) {
  Child child([](int socket, int pid) {
    Station station(socket, pid, settings());
    const base::Fd file(::memfd_create("own", MFD_ALLOW_SEALING));
    if (::ftruncate(file.get(), 4096) != 0) return false;
    void* start = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    Segment segment = Segment::host(start, 4096);
    segment.fd = file.get();
    station.pin(kThere, segment);
    return station.hears("end");
  });
  Station station(child.socket(), child.pid(), settings());
  std::byte byte{1};
  ASSERT_TRUE(station.backend().pin(kHere, Segment::host(&byte, 1)));
  EXPECT_TRUE(station.reaches(kHere, kThere, "cma"));
  station.say("end");
  EXPECT_EQ(child.exitCode(), 0);
}

TEST(LocalProcess, UnmappedMemoryIsAnErrorNotACrash) {
  Child child([](int socket, int pid) {
    Station station(socket, pid, settings());
    void* start =
        ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    station.pin(kThere, Segment::host(start, kBytes));
    if (!station.hears("unmap")) return false;
    ::munmap(static_cast<std::byte*>(start) + kBytes / 2, kBytes / 2);
    station.say("unmapped");
    return station.hears("end");
  });
  Station station(child.socket(), child.pid(), settings());
  Memory memory(false);
  ASSERT_TRUE(station.backend().pin(kHere, memory.segment()));
  ASSERT_TRUE(station.reaches(kHere, kThere, "cma"));
  station.say("unmap");
  ASSERT_TRUE(station.hears("unmapped"));
  const auto ops = whole(memory.bytes(), station.pins.front().info.address);
  const auto error = station.move(OpKind::kWrite, ops);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->os_errno, EFAULT);
  EXPECT_EQ(error->operation, "process_vm_writev");
  station.say("end");
  EXPECT_EQ(child.exitCode(), 0);
}

// From now on process_vm_readv and process_vm_writev give EPERM here.
bool forbidCma() {
  constexpr std::uint32_t kEperm = SECCOMP_RET_ERRNO | EPERM;
  std::array<sock_filter, 5> program{
      sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 2, 0),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 1, 0),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      sock_filter BPF_STMT(BPF_RET | BPF_K, kEperm)};
  const sock_fprog filter{program.size(), program.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

TEST(LocalProcess, WhereCmaIsForbiddenTheLinkSaysSoAndMappedMemoryStillMoves) {
  Child child([](int socket, int pid) {
    if (!forbidCma()) return false;
    Station station(socket, pid, settings());
    Memory memory(true);
    memory.fill(9);
    if (!station.backend().pin(kHere, memory.segment()) || !station.ready()) return false;
    station.say(station.link().state().text);
    if (!station.reaches(kHere, kThere, "mapped")) return false;
    if (station.move(OpKind::kWrite, whole(memory.bytes(), station.pins[0].info.address)))
      return false;
    station.say(std::to_string(sum(memory.bytes())));
    // Plain memory is left to other backends.
    if (!station.run([&] { return station.pins.size() == 2; })) return false;
    return !station.link().reaches(OpKind::kWrite, kHere, kThere + 1);
  });
  Station station(child.socket(), child.pid(), settings());
  Memory memory(true);
  Memory plain(false);
  station.pin(kThere, memory.segment());
  station.pin(kThere + 1, plain.segment());
  ASSERT_TRUE(station.hears("mapped; no cma: process_vm_readv: Operation not permitted"));
  ASSERT_TRUE(station.run([&] { return !station.said.empty(); }));
  EXPECT_EQ(station.said.front(), std::to_string(sum(memory.bytes())));
  EXPECT_EQ(child.exitCode(), 0);
}

TEST(LocalProcess, InAnotherPidNamespaceMappedMemoryMoves) {
  Child child(
      [](int socket, int pid) {
        Station station(socket, pid, settings());
        Memory memory(true);
        memory.fill(9);
        if (!station.backend().pin(kHere, memory.segment()) || !station.ready()) return false;
        station.say(station.link().state().text);
        if (!station.reaches(kHere, kThere, "mapped")) return false;
        if (station.move(OpKind::kWrite, whole(memory.bytes(), station.pins[0].info.address)))
          return false;
        station.say(std::to_string(sum(memory.bytes())));
        return station.hears("end");
      },
      true);
  if (child.pid() == 0) GTEST_SKIP() << "skipped: no right to make a PID namespace";
  // As if each were in a namespace of its own: neither sees the other.
  Station station(child.socket(), 0, settings());
  Memory memory(true);
  station.pin(kThere, memory.segment());
  ASSERT_TRUE(station.ready());
  EXPECT_NE(station.link().state().text.find("no cma: the peer's process is not visible"),
            std::string::npos);
  ASSERT_TRUE(station.run([&] { return station.said.size() == 2; }));
  EXPECT_EQ(station.said[0], station.link().state().text);
  EXPECT_EQ(station.said[1], std::to_string(sum(memory.bytes())));
  // Dead, it is settled although its pid was never seen.
  station.said.clear();
  core::Completions out;
  station.link().close(out);
  station.say("end");
  EXPECT_EQ(child.exitCode(), 0);
  EXPECT_TRUE(station.link().settled());
}

// A peer that goes into our gate by hand, and stays there until told to leave.
bool standInside(int socket, int pid) {
  Station station(socket, pid, settings(), true);
  if (!station.run([&] { return !station.letters.empty(); })) return false;
  auto& fds = station.letters.front().second;
  auto page = SharedMemory::map(fds[0], sizeof(Gate), SharedMemory::Access::kReadWrite);
  auto* gate = reinterpret_cast<Gate*>(page->data());
  const Gate::Pass pass = gate->enter();
  if (!pass) return false;
  // We can answer with our own gate: what is in it is not looked at here.
  const base::Fd self = openPidfd(::getpid());
  const auto table = LiveTable::make();
  const auto own = SharedMemory::allocate(4096);
  if (!station.send(encode(Hello{}), std::array{own->fd(), table->fd(), self.get()})) return false;
  station.say("inside");
  if (!station.hears("leave")) return false;
  gate->leave(pass);
  station.say("outside");
  return station.hears("end");
}

TEST(LocalProcess, APeerFrozenInsideAChunkIsUnsettledUntilItLeaves) {
  Child child(standInside);
  Station station(child.socket(), child.pid(), settings());
  Memory memory(true);
  for (std::uint32_t slot = kThere; slot < kThere + 3; ++slot) station.pin(slot, memory.segment());
  ASSERT_TRUE(station.hears("inside"));
  const auto before = Clock::now();
  const Status unpinned = station.backend().unpin(kThere);
  ASSERT_FALSE(unpinned);
  EXPECT_EQ(unpinned.error().code, Code::kPeerLost);
  EXPECT_EQ(unpinned.error().peer, "other");
  EXPECT_LT(Clock::now() - before, std::chrono::seconds(5));  // bounded by the grace of 100 ms
  EXPECT_FALSE(station.backend().unpin(kThere + 1));          // still inside
  core::Completions out;
  station.link().close(out);
  EXPECT_FALSE(station.link().settled());
  station.say("leave");
  ASSERT_TRUE(station.hears("outside"));
  EXPECT_TRUE(station.link().settled());
  EXPECT_TRUE(station.backend().unpin(kThere + 2));
  station.say("end");
  EXPECT_EQ(child.exitCode(), 0);
}

TEST(LocalProcess, APeerKilledInsideAChunkIsSettled) {
  Child child(standInside);
  Station station(child.socket(), child.pid(), settings());
  ASSERT_TRUE(station.hears("inside"));
  core::Completions out;
  station.link().close(out);
  EXPECT_FALSE(station.link().settled());
  child.signal(SIGKILL);
  EXPECT_EQ(child.exitCode(), -1);
  EXPECT_TRUE(station.link().settled());
}

TEST(LocalProcess, HugePagesAreMappedLikeAnyOther) {
  if (!SharedMemory::allocate(kBytes, {.huge_pages = true}))
    GTEST_SKIP() << "skipped: no free 2 MiB pages";
  Child child([](int socket, int pid) {
    Station station(socket, pid, settings());
    auto memory = SharedMemory::allocate(kBytes, {.huge_pages = true});
    if (!memory) return false;
    station.pin(kThere, memory->segment());
    return station.hears("look") && memory->data()[kBytes - 1] == kMark;
  });
  Station station(child.socket(), child.pid(), settings());
  Memory memory(false);
  memory.mark();
  ASSERT_TRUE(station.backend().pin(kHere, memory.segment()));
  ASSERT_TRUE(station.reaches(kHere, kThere, "mapped"));
  ASSERT_FALSE(station.move(OpKind::kWrite, whole(memory.bytes(), station.pins[0].info.address)));
  station.say("look");
  EXPECT_EQ(child.exitCode(), 0);
}

}  // namespace
}  // namespace viaduct::local::testing
