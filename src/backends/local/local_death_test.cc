// Tests the guarantees of the local backend, for each way, when a process is stopped or killed in
// the middle of a copy.
#include <gtest/gtest.h>

#include "backends/local/gate.h"
#include "backends/local/local_message.h"
#include "backends/local/own_memory_testing.h"

namespace viaduct::local::testing {
namespace {

class LocalDeath : public EveryWay {};
INSTANTIATE_TEST_SUITE_P(Local, LocalDeath, ::testing::Bool(),
                         [](const auto& param) { return param.param ? "mapped" : "cma"; });

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

TEST_P(LocalDeath, UnpinDuringTrafficFromAnotherProcess) {
  const bool sort = shared();
  Child child([=](int socket, int pid) { return writeForEver(socket, pid, sort, 4096, 2); });
  Station station(child.socket(), child.pid(), settings());
  Memory memory(shared());
  station.pin(kThere, memory.segment());
  ASSERT_TRUE(station.hears("writing"));
  ASSERT_TRUE(station.run([&] { return memory.bytes()[0] == std::byte{0}; }));
  memory.mark();
  ASSERT_TRUE(station.run([&] { return memory.bytes()[kBytes / 2] != kMark; }));  // it is writing
  const Status unpinned = station.unpin(kThere);
  ASSERT_TRUE(unpinned) << unpinned.error().text();
  memory.mark();
  ASSERT_TRUE(station.hears(codeName(Code::kDenied)));
  EXPECT_TRUE(memory.marked());
  station.say("end");
  EXPECT_EQ(child.exitCode(), 0);
}

TEST_P(LocalDeath, APeerStoppedBetweenChunksNeverWritesAgain) {
  const bool sort = shared();
  Child child([=](int socket, int pid) {
    Station station(socket, pid, settings(1));  // one copy thread: poll() itself copies
    Memory memory(sort);
    if (!station.backend().pin(kHere, memory.segment())) return false;
    if (!station.reaches(kHere, kThere, sort ? "mapped" : "cma")) return false;
    std::vector<Op> ops;
    for (int i = 0; i < 1000; ++i)
      std::ranges::copy(whole(memory.bytes(), station.pins.front().info.address, kBytes),
                        std::back_inserter(ops));
    if (station.post(OpKind::kWrite, ops) != ops.size()) return false;
    station.rail().poll(station.done);
    if (!station.done.empty()) return false;  // the work is half done, but no chunk is
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
  EXPECT_TRUE(station.unpin(kThere));
  memory.mark();
  child.signal(SIGCONT);
  ASSERT_TRUE(station.hears(codeName(Code::kPeerLost)));
  EXPECT_TRUE(memory.marked());
  station.say("end");
  EXPECT_EQ(child.exitCode(), 0);
}

TEST_P(LocalDeath, APeerStoppedAnywhereIsSettledOrSaidNotToBe) {
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

TEST_P(LocalDeath, AKilledWriterSettles) {
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
  EXPECT_EQ(child.exitCode(), -1);  // killed and reaped: the process does not exist any more
  EXPECT_TRUE(station.link().settled());
  EXPECT_TRUE(station.unpin(kThere));
  memory.mark();
  EXPECT_TRUE(memory.marked());
}

TEST_P(LocalDeath, AKilledOwnerDoesNotHarmTheWriter) {
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
    EXPECT_FALSE(error);  // the memory outlives its owner; the session reports the death
  } else {
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code, Code::kPeerLost) << error->text();
  }
}

// A peer that enters our gate without a copy, and stays inside until it is told to leave.
bool standInside(int socket, int pid) {
  Station station(socket, pid, settings(), true);
  if (!station.run([&] { return !station.letters.empty(); })) return false;
  auto& fds = station.letters.front().second;
  auto page = SharedMemory::map(fds[0], sizeof(Gate), SharedMemory::Access::kReadWrite);
  auto* gate = reinterpret_cast<Gate*>(page->data());
  const Gate::Pass pass = gate->enter();
  if (!pass) return false;
  // Our own gate serves as an answer, because this test does not use its contents.
  const base::Fd self = openPidfd(::getpid());
  const auto table = LiveTable::make();
  const auto own = SharedMemory::allocate(4096);
  if (!station.send(encode(LocalHello{}), std::array{own->fd(), table->fd(), self.get()}))
    return false;
  station.say("inside");
  if (!station.hears("leave")) return false;
  gate->leave(pass);
  station.say("outside");
  return station.hears("end");
}

TEST(LocalInside, APeerFrozenInsideAChunkIsUnsettledUntilItLeaves) {
  Child child(standInside);
  Station station(child.socket(), child.pid(), settings());
  Memory memory(true);
  for (std::uint32_t slot = kThere; slot < kThere + 3; ++slot) station.pin(slot, memory.segment());
  ASSERT_TRUE(station.hears("inside"));
  const auto before = Clock::now();
  const Status unpinned = station.unpin(kThere);
  ASSERT_FALSE(unpinned);
  EXPECT_EQ(unpinned.error().code, Code::kPeerLost);
  EXPECT_EQ(unpinned.error().peer, "other");
  EXPECT_LT(Clock::now() - before, std::chrono::seconds(5));  // bounded by the grace of 100 ms
  EXPECT_FALSE(station.unpin(kThere + 1));                    // still inside
  core::Completions out;
  station.link().close(out);
  EXPECT_FALSE(station.link().settled());
  station.say("leave");
  ASSERT_TRUE(station.hears("outside"));
  EXPECT_TRUE(station.link().settled());
  EXPECT_TRUE(station.unpin(kThere + 2));
  station.say("end");
  EXPECT_EQ(child.exitCode(), 0);
}

TEST(LocalInside, APeerKilledInsideAChunkIsSettled) {
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

}  // namespace
}  // namespace viaduct::local::testing
