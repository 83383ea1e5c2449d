// Notes between agents of one host, which go through a ring beside the session or through the
// session. Either way notes come once, whole and in order, and wake waiting threads.
#include <gtest/gtest.h>
#include <poll.h>
#include <viaduct/viaduct.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "support/agent_of_a_clock.h"

namespace viaduct {
namespace {

using namespace std::chrono_literals;

Agent openWithoutHeartbeat(std::string name, std::uint64_t backlog = Settings{}.note_backlog) {
  Settings settings;
  settings.name = std::move(name);
  settings.listen = {};
  settings.note_backlog = backlog;
  settings.detect = 10min;  // so that only notes wake a thread, not heartbeats
  auto agent = Agent::open(settings);
  EXPECT_TRUE(agent) << agent.error().text();
  return *std::move(agent);
}

// Makes `to` a peer of `from`, and waits until it is ready.
Peer join(Agent& from, const Agent& to) {
  auto peer = from.importCard(to.exportCard());
  EXPECT_TRUE(peer && peer->ready(10s));
  return *peer;
}

// Notes of every possible length, mostly short. Each contains its number, and a byte that follows
// from the number.
class Stream {
 public:
  explicit Stream(std::uint64_t seed) : random_(seed) {}
  std::vector<std::byte> next() {
    const auto kind = random_() % 2000;
    const std::size_t most = kind == 0 ? kMaxNoteBytes : kind < 40 ? 8000 : 100;
    std::vector<std::byte> note(random_() % (most + 1), static_cast<std::byte>(number_ * 7));
    if (note.size() >= sizeof number_) std::memcpy(note.data(), &number_, sizeof number_);
    ++number_;
    return note;
  }

 private:
  std::mt19937_64 random_;
  std::uint64_t number_ = 0;
};

void sendAll(const Peer& to, std::uint64_t seed, int notes) {
  Stream stream(seed);
  for (int i = 0; i < notes; ++i) {
    const auto note = stream.next();
    for (;;) {  // until the ring has room
      const Status sent = to.note(note);
      if (sent) break;
      ASSERT_EQ(sent.error().code, Code::kBusy) << sent.error().text();
      std::this_thread::yield();
    }
  }
}

void expectAll(Agent& at, std::uint64_t seed, int notes) {
  Stream stream(seed);
  for (int i = 0; i < notes; ++i) {
    const auto note = at.waitNote(60s);
    ASSERT_TRUE(note) << "note " << i << ": " << note.error().text();
    ASSERT_TRUE(note->bytes == stream.next()) << "note " << i;
  }
  EXPECT_FALSE(at.takeNote());
}

TEST(Notes, AHundredThousandOfAllLengthsBothWaysAtOnce) {
  constexpr int kEach = 50000;
  Agent a = openWithoutHeartbeat("a"), b = openWithoutHeartbeat("b", 1U << 20U);
  const Peer to_b = join(a, b);
  const Peer to_a = *b.peer("a");
  ASSERT_TRUE(to_a.ready(10s));
  std::thread send_b([&] { sendAll(to_b, 1, kEach); });
  std::thread send_a([&] { sendAll(to_a, 2, kEach); });
  std::thread take_b([&] { expectAll(b, 1, kEach); });
  expectAll(a, 2, kEach);
  send_b.join();
  send_a.join();
  take_b.join();
}

TEST(Notes, ArriveAfterEarlierPins) {
  Agent a = openWithoutHeartbeat("a"), b = openWithoutHeartbeat("b");
  const Peer to_b = join(a, b);
  std::vector<Pin> pins;
  for (int i = 0; i < 300; ++i) {
    const std::string label = std::to_string(i);
    pins.push_back(*a.allocate(4096, {.label = label}));
    ASSERT_TRUE(to_b.note(label));
    const auto note = b.waitNote(10s);
    ASSERT_TRUE(note);
    const auto known = b.peer("a")->pins();
    EXPECT_TRUE(std::ranges::any_of(known, [&](const PinInfo& pin) { return pin.label == label; }))
        << label;
  }
}

TEST(Notes, AReceiverThatTakesNoneBlocksTheSenderAndLosesNone) {
  Agent a = openWithoutHeartbeat("a"), b = openWithoutHeartbeat("b", 10000);
  const Peer to_b = join(a, b);
  const std::string text(500, 'x');
  int sent = 0;
  while (to_b.note(std::to_string(sent) + " " + text)) ++sent;
  EXPECT_GT(sent, 30000);  // buffers take more than this if the peer does not read
  for (int i = 0; i < sent; ++i) {
    const auto note = b.waitNote(10s);
    ASSERT_TRUE(note) << i;
    ASSERT_EQ(note->text(), std::to_string(i) + " " + text);
  }
  ASSERT_TRUE(to_b.note("more"));
  EXPECT_EQ(b.waitNote(10s)->text(), "more");
}

// Heartbeats and pins have room of their own, so full buffers for notes do not stop them.
TEST(Notes, AReceiverThatTakesNoneStaysConnected) {
  // The detection time is so long that the running time of the test does not matter.
  Settings settings{.name = "a", .listen = {}, .detect = 8h, .note_backlog = 10000};
  base::MovableClock clock;
  auto a = agent::AgentOfAClock::open(settings, clock);
  settings.name = "b";
  auto b = agent::AgentOfAClock::open(settings, clock);
  ASSERT_TRUE(a && b);
  const Peer to_b = join(*a, *b);
  ASSERT_TRUE(b->peer("a")->ready(10s));
  const std::string text(kMaxNoteBytes, 'x');
  int sent = 0;
  while (to_b.note(text)) ++sent;
  EXPECT_EQ(to_b.note(text).error().code, Code::kBusy);
  const auto pin = a->allocate(4096, {.label = "pinned meanwhile"});
  for (int eighths = 0; eighths < 16; ++eighths) {
    clock.advance(settings.detect / 8);
    a->poll();
    b->poll();
  }
  EXPECT_FALSE(to_b.over(to_b.epoch(), 0s)) << to_b.note(text).error().text();
  for (int i = 0; i < sent; ++i) ASSERT_TRUE(b->waitNote(10s)) << i << " of " << sent;
  EXPECT_TRUE(b->peer("a")->waitPin("pinned meanwhile", 10s));
  EXPECT_EQ(to_b.epoch(), 1U);
}

// Each note counts against the receiver's backlog, even if it is empty.
TEST(Notes, EmptyNotesUseUpTheBacklogToo) {
  constexpr int kFarTooMany = 5'000'000;
  Agent a = openWithoutHeartbeat("a"), b = openWithoutHeartbeat("b", 1U << 20U);
  const Peer to_b = join(a, b);
  int sent = 0;
  while (sent < kFarTooMany && to_b.note("")) ++sent;
  ASSERT_LT(sent, kFarTooMany);
  for (int i = 0; i < sent; ++i) ASSERT_TRUE(b.waitNote(10s)) << i << " of " << sent;
  ASSERT_TRUE(to_b.note("more"));
  EXPECT_EQ(b.waitNote(10s)->text(), "more");
}

TEST(Notes, APeerThatSendsTooManyDelaysNoOtherPeer) {
  Agent a = openWithoutHeartbeat("a"), b = openWithoutHeartbeat("b", 1U << 20U),
        c = openWithoutHeartbeat("c");
  const Peer to_b = join(a, b), also_to_b = join(c, b);
  while (to_b.note("x")) continue;
  const auto of_a = a.allocate(4096, {.label = "of a"}), of_c = c.allocate(4096, {.label = "of c"});
  ASSERT_TRUE(of_a && of_c);
  ASSERT_TRUE(also_to_b.note("of c"));
  EXPECT_TRUE(b.peer("c")->waitPin("of c", 10s));
  EXPECT_FALSE(b.peer("a")->waitPin("of a", 0s)) << "nothing more is read from it";
  std::string last;
  while (last != "of c") last = b.waitNote(10s)->text();
  while (!b.peer("a")->waitPin("of a", 0s)) ASSERT_TRUE(b.waitNote(10s));
}

TEST(Notes, SentBeforeTheSenderClosedAllArrive) {
  for (int round = 0; round < 20; ++round) {
    Agent b = openWithoutHeartbeat("b");
    {
      Agent a = openWithoutHeartbeat("a");
      const Peer to_b = join(a, b);
      for (int i = 0; i < 40; ++i)
        ASSERT_TRUE(to_b.note(std::to_string(i) + std::string(i % 9 == 0 ? 3000 : 0, '.')));
    }
    for (int i = 0; i < 40; ++i) {
      const auto note = b.waitNote(10s);
      ASSERT_TRUE(note) << i;
      EXPECT_TRUE(note->text().starts_with(std::to_string(i)));
    }
  }
}

TEST(Notes, ArriveAfterAPeerRestarts) {
  Agent b = openWithoutHeartbeat("b");
  for (int life = 0; life < 10; ++life) {
    Agent a = openWithoutHeartbeat("a");
    const Peer to_b = join(a, b);
    ASSERT_TRUE(to_b.note("one " + std::to_string(life)));
    ASSERT_TRUE(to_b.note("two " + std::to_string(life)));
    EXPECT_EQ(b.waitNote(10s)->text(), "one " + std::to_string(life));
    EXPECT_EQ(b.waitNote(10s)->text(), "two " + std::to_string(life));
  }
}

TEST(Notes, SessionsLeaveNoDescriptorsBehind) {
  const auto open_files = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
  };
  Agent b = openWithoutHeartbeat("b");
  const auto once = [&] {
    Agent a = openWithoutHeartbeat("a");
    const Peer to_b = join(a, b);
    ASSERT_TRUE(to_b.note("x"));
    ASSERT_TRUE(b.waitNote(10s));
    const Peer to_a = *b.peer("a");
    const auto epoch = to_a.epoch();
    to_b.forget();
    ASSERT_TRUE(to_a.over(epoch, 10s));
  };
  once();
  const auto before = open_files();
  for (int i = 0; i < 30; ++i) once();
  EXPECT_LE(open_files(), before + 2);  // the last session's files may still be about to close
}

TEST(Notes, ArriveAtAnAgentThatIsItsOwnPeer) {
  Agent a = openWithoutHeartbeat("a");
  auto self = a.self();
  ASSERT_TRUE(self && self->ready(10s));
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(self->note(std::to_string(i)));
    EXPECT_EQ(a.waitNote(10s)->text(), std::to_string(i));
  }
}

// The functions below are the ways to receive a note. The receiver uses them in turn.
std::optional<Note> byPolling(Agent& agent) {
  for (const auto until = Clock::now() + 20s; Clock::now() < until;) {
    agent.poll();
    if (auto note = agent.takeNote()) return note;
  }
  return std::nullopt;
}
std::optional<Note> byWaiting(Agent& agent) {
  auto note = agent.waitNote(20s);
  return note ? std::optional(*std::move(note)) : std::nullopt;
}
// Leaves all progress to the progress thread.
std::optional<Note> byDoingNothing(Agent& agent) {
  for (const auto until = Clock::now() + 20s; Clock::now() < until; std::this_thread::yield())
    if (auto note = agent.takeNote()) return note;
  return std::nullopt;
}
std::optional<Note> byEventFd(Agent& agent) {
  pollfd waits{.fd = *agent.eventFd(), .events = POLLIN, .revents = 0};
  for (const auto until = Clock::now() + 20s; Clock::now() < until;) {
    if (auto note = agent.takeNote()) return note;
    if (::poll(&waits, 1, 20000) == 1) agent.poll();
  }
  return std::nullopt;
}

class NotesAreHeard : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(NotesAreHeard, ByEveryWayToReceive) {
  constexpr int kNotes = 3000;
  Agent a = openWithoutHeartbeat("a"), b = openWithoutHeartbeat("b");
  const Peer to_b = join(a, b);
  std::atomic<int> taken{0};
  std::thread sender([&] {
    std::mt19937_64 random(GetParam());
    for (int i = 0; i < kNotes; ++i) {
      // Half of the notes wait until the receiver has taken all earlier notes. Therefore many notes
      // find a receiver that sleeps, or is about to sleep.
      if (random() % 2 == 0)
        for (int seen = taken; seen < i; seen = taken) taken.wait(seen);
      for (auto spins = random() % 4000; spins > 0; --spins)
        std::atomic_signal_fence(std::memory_order_seq_cst);
      ASSERT_TRUE(to_b.note(std::to_string(i)));
    }
  });
  std::mt19937_64 random(GetParam() + 1);
  for (int i = 0; i < kNotes;) {
    const auto way = random() % 10;
    for (auto times = random() % 20; times > 0 && i < kNotes; --times, ++i) {
      const auto note = way < 4                     ? byWaiting(b)
                        : way < 8                   ? byPolling(b)
                        : way < 9 || i < kNotes / 2 ? byDoingNothing(b)
                                                    : byEventFd(b);
      ASSERT_TRUE(note) << "note " << i << " way " << way;
      ASSERT_EQ(note->text(), std::to_string(i));
      taken = i + 1;
      taken.notify_all();
    }
  }
  sender.join();
}

INSTANTIATE_TEST_SUITE_P(Seeds, NotesAreHeard, ::testing::Values(11, 22, 33));

}  // namespace
}  // namespace viaduct
