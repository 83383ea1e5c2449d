#include "agent/session/note_ring.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/bytes.h"

namespace viaduct::agent {
namespace {

using base::bytesOf;
using Next = RingReceiver::Next;

base::Fd copyOf(int fd) { return base::Fd(::fcntl(fd, F_DUPFD_CLOEXEC, 0)); }

// Both ends, and the page as a malicious peer sees it.
struct Ends {
  RingReceiver receiver = *RingReceiver::make();
  base::SharedMemory memory = *base::SharedMemory::map(copyOf(receiver.fds()[0]), sizeof(RingPage),
                                                       base::SharedMemory::Access::kReadWrite);
  RingPage& page = *reinterpret_cast<RingPage*>(memory.data());
  RingSender sender = *RingSender::map(copyOf(receiver.fds()[0]), copyOf(receiver.fds()[1]));

  bool rung() const {
    std::uint64_t rings = 0;
    return ::read(receiver.bell(), &rings, sizeof rings) > 0;
  }
  std::string taken(std::uint64_t frames = 0) {
    base::Bytes note;
    if (receiver.take(frames, note) != Next::kNote) return "no note";
    return {reinterpret_cast<const char*>(note.data()), note.size()};
  }
  // Puts in an entry with this header, as the peer may do.
  void forge(RingPage::NoteHeader entry, std::uint64_t written) {
    std::memcpy(page.data.data(), &entry, sizeof entry);
    page.written = written;
  }
};

TEST(NoteRing, AHeartbeatIsSeenOnce) {
  Ends ends;
  EXPECT_FALSE(ends.receiver.hasBeaten());
  ends.sender.beat();
  ends.sender.beat();
  EXPECT_TRUE(ends.receiver.hasBeaten());
  EXPECT_FALSE(ends.receiver.hasBeaten());
  EXPECT_FALSE(ends.rung());
}

TEST(NoteRing, NotesComeOutInOrderAndWhole) {
  Ends ends;
  using namespace std::string_view_literals;
  for (const auto note : {"one"sv, ""sv, "with\0zero"sv})
    ASSERT_TRUE(ends.sender.put(0, bytesOf(note)));
  EXPECT_EQ(ends.taken(), "one");
  EXPECT_EQ(ends.taken(), "");
  EXPECT_EQ(ends.taken(), "with\0zero"sv);
  EXPECT_EQ(ends.taken(), "no note");
}

TEST(NoteRing, ANoteWaitsForTheFramesSentBeforeIt) {
  Ends ends;
  ASSERT_TRUE(ends.sender.put(7, bytesOf("late")));
  ASSERT_TRUE(ends.sender.put(7, bytesOf("later")));
  base::Bytes note;
  EXPECT_EQ(ends.receiver.take(6, note), Next::kLater);
  EXPECT_EQ(ends.receiver.look(7), Next::kNote);
  EXPECT_EQ(ends.taken(7), "late");
  EXPECT_EQ(ends.taken(8), "later");
}

TEST(NoteRing, MarksAndNotesComeOutInOneOrder) {
  Ends ends;
  ASSERT_TRUE(ends.sender.put(0, bytesOf("note")));
  ASSERT_TRUE(ends.sender.put(0, bytesOf("mark"), RingPage::EntryKind::kMark));
  ASSERT_TRUE(ends.sender.put(1, bytesOf("later"), RingPage::EntryKind::kMark));
  EXPECT_EQ(ends.taken(), "note");
  base::Bytes entry;
  EXPECT_EQ(ends.receiver.look(0), Next::kMark);
  EXPECT_EQ(ends.receiver.take(0, entry), Next::kMark);
  EXPECT_EQ(entry, base::Bytes(bytesOf("mark").begin(), bytesOf("mark").end()));
  EXPECT_EQ(ends.receiver.take(0, entry), Next::kLater);
}

// TSan sees the page at two addresses: docs/gotchas/sanitizers.md.
TEST(NoteRing, TheReceiverOfANoteSeesWhatTheSenderWroteBeforeIt) {
  Ends ends;
  int answer = 0;
  std::thread sender([&] {
    answer = 42;
    ends.sender.put(0, bytesOf("written"));
  });
  base::Bytes note;
  while (ends.receiver.take(0, note) != Next::kNote) std::this_thread::yield();
  EXPECT_EQ(answer, 42);
  sender.join();
}

TEST(NoteRing, SignalsOnceIfTheReceiverSleepsAndNeverIfItPolls) {
  Ends ends;
  ASSERT_TRUE(ends.sender.put(0, bytesOf("a")));
  EXPECT_TRUE(ends.rung());
  ASSERT_TRUE(ends.sender.put(0, bytesOf("b")));
  EXPECT_FALSE(ends.rung());
  ends.receiver.arm();
  ASSERT_TRUE(ends.sender.put(0, bytesOf("c")));
  EXPECT_TRUE(ends.rung());
  ends.receiver.arm();
  ends.receiver.disarm();
  ASSERT_TRUE(ends.sender.put(0, bytesOf("d")));
  EXPECT_FALSE(ends.rung());
}

TEST(NoteRing, AFullRingTakesNothingUntilThereIsRoom) {
  Ends ends;
  const std::string note(1000, 'x');
  int put = 0;
  while (ends.sender.put(0, bytesOf(note))) ++put;
  EXPECT_EQ(put, static_cast<int>(RingPage::kBytes / 1024));
  EXPECT_EQ(ends.taken(), note);
  EXPECT_TRUE(ends.sender.put(0, bytesOf(note)));
  EXPECT_FALSE(ends.sender.put(0, bytesOf(note)));
}

TEST(NoteRing, TheLongestNoteFitsAndALongerOneDoesNot) {
  Ends ends;
  const std::string longest(kMaxRingNote, 'x');
  for (int i = 0; i < 100; ++i) {  // enough to cross the end of the ring
    ASSERT_TRUE(ends.sender.put(0, bytesOf(longest)));
    ASSERT_EQ(ends.taken(), longest);
  }
  EXPECT_FALSE(ends.sender.put(0, bytesOf(longest + "x")));
  EXPECT_EQ(ends.taken(), "no note");
}

TEST(NoteRing, AnUnpublishedNoteIsNeverTaken) {
  Ends ends;
  // The sender has written a note, but died before it published the note.
  const RingPage::NoteHeader entry{.bytes = 4};
  std::memcpy(ends.page.data.data(), &entry, sizeof entry);
  EXPECT_EQ(ends.receiver.look(0), Next::kEmpty);
}

TEST(NoteRing, MalformedEntriesAreDetected) {
  struct Case {
    RingPage::NoteHeader entry;
    std::uint64_t written;
  };
  const std::vector<Case> cases{{{.bytes = kMaxRingNote + 1}, RingPage::kBytes},
                                {{.bytes = ~0U}, RingPage::kBytes},
                                {{.bytes = 100}, 32},
                                {{.bytes = 0}, 8},
                                {{.kind = RingPage::EntryKind{4}}, 16},
                                {{.bytes = 0}, RingPage::kBytes + 16},
                                {{.bytes = 0}, ~std::uint64_t{0}}};
  for (const Case& wrong : cases) {
    Ends ends;
    ends.forge(wrong.entry, wrong.written);
    base::Bytes note;
    EXPECT_EQ(ends.receiver.take(~std::uint64_t{0}, note), Next::kBroken)
        << wrong.entry.bytes << " bytes of " << wrong.written;
  }
}

TEST(NoteRing, AMalformedCountOfTheReceiverMeansNoRoom) {
  Ends ends;
  const std::string note(1000, 'x');
  while (ends.sender.put(0, bytesOf(note))) {
  }
  for (const std::uint64_t taken :
       {std::uint64_t{1} << 40U, ~std::uint64_t{0}, RingPage::kBytes + 16}) {
    ends.page.taken = taken;
    EXPECT_FALSE(ends.sender.put(0, bytesOf(note))) << taken;
  }
}

TEST(NoteRing, OnlyANonblockingEventFdAndAWholePageAreAccepted) {
  Ends ends;
  std::array<int, 2> ends_of_pipe{};
  ASSERT_EQ(::pipe2(ends_of_pipe.data(), O_NONBLOCK | O_CLOEXEC), 0);
  const base::Fd out(ends_of_pipe[0]);
  const base::Fd page = copyOf(ends.receiver.fds()[0]);
  EXPECT_FALSE(RingSender::map(page, base::Fd(ends_of_pipe[1])));
  EXPECT_FALSE(RingSender::map(page, base::Fd(::eventfd(0, EFD_CLOEXEC))));
  EXPECT_TRUE(RingSender::map(page, base::Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))));
  const auto small = base::SharedMemory::allocate(4096);
  ASSERT_TRUE(small);
  EXPECT_FALSE(RingSender::map(copyOf(small->fd()), copyOf(ends.receiver.fds()[1])));
}

// A peer may write any bytes. No memory outside the ring is read, and notes stay within the limits.
TEST(NoteRing, RandomBytesInThePageDoNoHarm) {
  std::mt19937_64 random(20261121);
  for (int round = 0; round < 300; ++round) {
    Ends ends;
    for (std::size_t at = 0; at < RingPage::kBytes; at += 8) {
      // Small numbers are often nearly right as lengths.
      const std::uint64_t value = random() >> (random() % 64);
      std::memcpy(&ends.page.data[at], &value, sizeof value);
    }
    ends.page.written = random() % (2 * RingPage::kBytes);
    ends.page.taken = random();
    base::Bytes note;
    Next next = Next::kNote;
    std::size_t notes = 0;
    while ((next = ends.receiver.take(random(), note)) == Next::kNote) {
      EXPECT_LE(note.size(), kMaxRingNote);
      ASSERT_LE(++notes, RingPage::kBytes / RingPage::kStep);
    }
    static_cast<void>(ends.sender.put(random(), bytesOf("after")));
  }
}

// The length and the first bytes of note n follow from n and the seed, so each note can be
// recognized.
std::string nthNote(std::uint64_t seed, std::uint64_t n) {
  std::mt19937_64 random(seed ^ (n * 0x9e3779b97f4a7c15ULL));
  const std::size_t bytes = random() % (random() % 8 == 0 ? kMaxRingNote + 1 : 64);
  std::string note(bytes, static_cast<char>(random()));
  return std::to_string(n) + ":" + note.substr(0, kMaxRingNote - 24);
}

class NoteRingOfTwoThreads : public ::testing::TestWithParam<std::uint64_t> {};

// The receiver sleeps without a timeout, so a missing wake-up would hang the test.
TEST_P(NoteRingOfTwoThreads, EveryNoteArrivesOnceInOrder) {
  constexpr std::uint64_t kNotes = 20000;
  const std::uint64_t seed = GetParam();
  Ends ends;
  std::thread sender([&] {
    std::mt19937_64 random(seed);
    for (std::uint64_t n = 0; n < kNotes; ++n) {
      const std::string note = nthNote(seed, n);
      while (!ends.sender.put(n, bytesOf(note))) std::this_thread::yield();
      if (random() % 64 == 0) std::this_thread::yield();
    }
  });
  std::mt19937_64 random(seed + 1);
  for (std::uint64_t n = 0; n < kNotes;) {
    base::Bytes note;
    const Next next = ends.receiver.take(n, note);
    ASSERT_TRUE(next == Next::kNote || next == Next::kEmpty);
    if (next == Next::kNote) {
      const std::string expected = nthNote(seed, n++);
      ASSERT_TRUE(std::ranges::equal(note, bytesOf(expected))) << "note " << n;
      continue;
    }
    if (random() % 2 == 0) {
      ends.receiver.disarm();
      continue;
    }
    ends.receiver.arm();
    if (ends.receiver.look(n) != Next::kEmpty) continue;
    pollfd waits{.fd = ends.receiver.bell(), .events = POLLIN, .revents = 0};
    ASSERT_EQ(::poll(&waits, 1, -1), 1);
    ends.rung();
  }
  sender.join();
  EXPECT_EQ(ends.receiver.look(kNotes), Next::kEmpty);
}

INSTANTIATE_TEST_SUITE_P(Seeds, NoteRingOfTwoThreads, ::testing::Values(1, 2, 3, 4));

}  // namespace
}  // namespace viaduct::agent
