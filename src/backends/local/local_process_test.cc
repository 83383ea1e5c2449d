// Tests the local backend between processes: every way, and every refusal.
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <random>

#include "backends/local/own_memory_testing.h"
#include "base/random.h"
#include "support/huge_pages.h"
#include "support/strict_overcommit.h"

namespace viaduct::local::testing {
namespace {

// Covers all of the memory with pieces of random lengths up to `longest`, in random order.
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
    if (!station.unpin(8)) return false;
    station.say("unpinned");
    if (!station.hears("look")) return false;
    return memory.bytes()[kBytes / 2 + 5] == std::byte{42} && station.unpin(9);
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

// A holder of a file descriptor has the whole file, for as long as it likes.
TEST(LocalProcess, AMemfdThatIsNotSharedIsNotHandedOut) {
  Child child([](int socket, int pid) {
    Station station(socket, pid, settings());
    Memory memory(true);
    Segment part = memory.segment();
    part.bytes = 4096;
    part.share_file = false;
    station.pin(kThere, part);
    if (!station.hears("moved")) return false;
    const auto bytes = memory.bytes();
    station.say(bytes[4095] == std::byte{42} && bytes[4096] == std::byte{0} ? "part" : "wrong");
    return station.hears("end");
  });
  Station station(child.socket(), child.pid(), settings());
  const std::vector<std::byte> block(8192, std::byte{42});
  ASSERT_TRUE(station.backend().pin(kHere, Segment::host(block.data(), block.size())));
  ASSERT_TRUE(station.reaches(kHere, kThere, "cma"));
  const auto from = reinterpret_cast<std::uintptr_t>(block.data());
  const Op all{from, station.pins.front().info.address, 4096, kHere, kThere};
  EXPECT_FALSE(station.move(OpKind::kWrite, {&all, 1}));
  const Op beyond{from, all.remote + 1, 4096, kHere, kThere};
  EXPECT_TRUE(station.move(OpKind::kWrite, {&beyond, 1})) << "in the pin's last page, behind it";
  station.say("moved");
  EXPECT_TRUE(station.hears("part"));
  EXPECT_EQ(station.files, 0U);
  station.say("end");
  EXPECT_EQ(child.exitCode(), 0);
}

TEST(LocalProcess, AMemfdForAnotherSessionIsNotHandedOut) {
  Child child([](int socket, int pid) {
    Station station(socket, pid, settings());
    Memory others(true), memory(true);
    const auto audience = core::Audience::only(9);
    if (!station.backend().pinFor(audience, kThere + 1, others.segment())) return false;
    station.pin(kThere, memory.segment());
    return station.hears("end");
  });
  Station station(child.socket(), child.pid(), settings());
  const std::vector<std::byte> block(8192);
  ASSERT_TRUE(station.backend().pin(kHere, Segment::host(block.data(), block.size())));
  ASSERT_TRUE(station.reaches(kHere, kThere, "mapped"));
  EXPECT_EQ(station.files, 1U);
  station.say("end");
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
    segment.share_file = true;
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

// Makes process_vm_readv and process_vm_writev fail with EPERM in this process.
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

volatile std::sig_atomic_t allowed = 0;

// Makes prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY) set `allowed` in this process.
bool watchAllowing() {
  constexpr auto kArgument = [](unsigned number) -> std::uint32_t {
    return static_cast<std::uint32_t>(offsetof(seccomp_data, args)) + 8 * number;
  };
  std::array<sock_filter, 8> program{
      sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 5),
      sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kArgument(0)),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PR_SET_PTRACER, 0, 3),
      sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kArgument(1)),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0xffffffffU, 0, 1),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog filter{program.size(), program.data()};
  std::signal(SIGSYS, [](int) { allowed = 1; });
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

// The kernels of the tests have no Yama, so the test only checks that the agent gives the
// permission.
TEST(LocalProcess, AnAgentAllowsPeersToCopyWhereYamaRestrictsIt) {
  Child child([](int socket, int pid) {
    if (!watchAllowing() || allowed != 0) return false;
    const Station station(socket, pid, settings());
    return allowed == 1;
  });
  EXPECT_EQ(child.exitCode(), 0);
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
    // Plain memory is not reachable, and is left to other backends.
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
  // Neither process gets the other's pid, as if both were in separate PID namespaces.
  Station station(child.socket(), 0, settings());
  Memory memory(true);
  station.pin(kThere, memory.segment());
  ASSERT_TRUE(station.ready());
  EXPECT_NE(station.link().state().text.find("no cma: the peer's process is not visible"),
            std::string::npos);
  ASSERT_TRUE(station.run([&] { return station.said.size() == 2; }));
  EXPECT_EQ(station.said[0], station.link().state().text);
  EXPECT_EQ(station.said[1], std::to_string(sum(memory.bytes())));
  // Once dead, the peer is settled although its pid was never visible.
  station.said.clear();
  core::Completions out;
  station.link().close(out);
  station.say("end");
  EXPECT_EQ(child.exitCode(), 0);
  EXPECT_TRUE(station.link().settled());
}

// A peer that maps huge pages for writing could punch holes into them.
TEST(LocalProcess, PeersMapHugePagesForReading) {
  const viaduct::testing::HugePages pages;
  if (!pages.enough()) GTEST_SKIP() << "skipped: no free 2 MiB pages";
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
  ASSERT_TRUE(station.reaches(kHere, kThere, "cma"));
  EXPECT_EQ(station.link().reaches(OpKind::kRead, kHere, kThere), "mapped");
  const auto ops = whole(memory.bytes(), station.pins[0].info.address);
  ASSERT_FALSE(station.move(OpKind::kWrite, ops));
  memory.fill(1);
  ASSERT_FALSE(station.move(OpKind::kRead, ops));
  EXPECT_TRUE(memory.marked());
  station.say("look");
  EXPECT_EQ(child.exitCode(), 0);
}

// Under strict overcommit, a peer that maps memory could punch holes into it, and take the pages
// that remain.
bool moveUnderStrictOvercommit() {
  if (!viaduct::testing::pretendStrictOvercommit()) ::_exit(77);
  Child child([](int socket, int pid) { return own(socket, pid, true); });
  Station station(child.socket(), child.pid(), settings());
  Memory memory(false);
  if (!station.backend().pin(kHere, memory.segment())) return false;
  if (!station.ready()) {  // without memfd_secret there is no gate
    const bool refused = station.link().state().text.find("memfd_secret") != std::string::npos;
    ::_exit(refused ? 76 : 2);
  }
  if (!station.reaches(kHere, kThere, "cma") ||
      station.link().reaches(OpKind::kRead, kHere, kThere) != "mapped")
    return false;
  memory.fill(5);
  if (station.move(OpKind::kWrite, whole(memory.bytes(), station.pins.front().info.address)))
    return false;
  station.say("sum");
  if (!station.hears(std::to_string(sum(memory.bytes())))) return false;
  station.say("end");
  return child.exitCode() == 0;
}

TEST(LocalProcess, UnderStrictOvercommitPeersMapMemoryForReading) {
  Child process([](int, int) { return moveUnderStrictOvercommit(); });
  const int code = process.exitCode();
  if (code == 77) GTEST_SKIP() << "skipped: this process may not mount";
  if (code == 76) GTEST_SKIP() << "skipped: no memfd_secret in this kernel";
  EXPECT_EQ(code, 0);
}

}  // namespace
}  // namespace viaduct::local::testing
