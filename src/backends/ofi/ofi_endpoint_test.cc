#include <poll.h>

#include <algorithm>
#include <numeric>

#include "backends/ofi/ofi_endpoint_testing.h"
#include "support/bytes.h"

// The provider net of libfabric 1.17 leaks memory of each endpoint.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() { return "leak:libfabric.so"; }

namespace viaduct::ofi {
namespace {

TEST_P(OfiEndpointTest, WrittenBytesAreAtThePeerWhenTheFlushEnds) {
  ASSERT_NO_FATAL_FAILURE(meet());
  for (const std::size_t bytes :
       {std::size_t{1}, std::size_t{8}, std::size_t{4096}, std::size_t{65536}, kMostPiece}) {
    testing::fillWith(b_.bytes, std::byte{0});
    moved(OpKind::kWrite, pieces(1, bytes, 0));
    EXPECT_TRUE(same(b_, 0, bytes)) << bytes;
    EXPECT_EQ(b_.bytes[bytes], std::byte{0}) << "nothing beyond it";
  }
}

TEST_P(OfiEndpointTest, ReadBytesHaveArrivedWhenTheFlushEnds) {
  ASSERT_NO_FATAL_FAILURE(meet());
  std::swap_ranges(a_.bytes.begin(), a_.bytes.end(), b_.bytes.begin());
  moved(OpKind::kRead, pieces(3, 512U << 10U, 1U << 20U));
  for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(same(a_, i << 20U, 512U << 10U));
  EXPECT_EQ(a_.bytes[512U << 10U], std::byte{0});
}

TEST_P(OfiEndpointTest, ManyPiecesArriveWithEachSettingOfInjectAndDoorbell) {
  for (const Toggle inject : {Toggle::kOff, Toggle::kOn})
    for (const Toggle doorbell : {Toggle::kOff, Toggle::kOn}) {
      settings_.inject = inject;
      settings_.doorbell = doorbell;
      a_.close();
      b_.close();
      ASSERT_NO_FATAL_FAILURE(meet());
      // More pieces than the endpoint's queue holds, so that it is full at times.
      const std::uint32_t small = moved(OpKind::kWrite, pieces(5000, 16, 512));
      EXPECT_EQ(small > 0, inject == Toggle::kOn);
      const auto& profile = static_cast<const OfiDomain&>(*a_.domain).profile();
      const std::uint32_t large = moved(OpKind::kWrite, pieces(900, 4096, 4096));
      EXPECT_EQ(large > 0, profile.inject >= 4096);
      EXPECT_TRUE(same(b_, 0, 900 * 4096));
      for (std::size_t i = 900 * 4096 / 512 + 1; i < 5000; ++i)
        ASSERT_TRUE(same(b_, i * 512, 16)) << i;
    }
}

TEST_P(OfiEndpointTest, FlushesEndInOrderAndCoverTheEarlierPosts) {
  ASSERT_NO_FATAL_FAILURE(meet());
  moved(OpKind::kWrite, pieces(1, 8, 0));  // connects the endpoints
  const auto all = pieces(8, 256U << 10U, 512U << 10U);
  std::vector<Flush> flushes;
  for (const Piece& one : all) {
    ASSERT_TRUE(turnUntil(
        [&] { return a_.endpoint->post(OpKind::kWrite, std::span(&one, 1), a_.key).pieces == 1; }));
    flushes.push_back(a_.endpoint->flush());
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    ASSERT_TRUE(turnUntil([&] { return a_.endpoint->ended(flushes[i]); }));
    EXPECT_TRUE(same(b_, i * (512U << 10U), 256U << 10U)) << i;
  }
}

TEST_P(OfiEndpointTest, MalformedKeysAreRefused) {
  ASSERT_NO_FATAL_FAILURE(meet());
  Bytes garbage(20, std::byte{0x5a});
  EXPECT_EQ(a_.endpoint->keyOf(2, garbage), nullptr);
  EXPECT_EQ(a_.endpoint->keyOf(2, {}), nullptr);
  EXPECT_NE(a_.endpoint->keyOf(2, b_.memory->key()), nullptr);
  a_.endpoint->retire(2);
  EXPECT_EQ(a_.endpoint->keyOf(2, garbage), nullptr) << "the old one is forgotten";
}

TEST_P(OfiEndpointTest, MalformedAndForeignAddressesAreRefused) {
  ASSERT_NO_FATAL_FAILURE(open(a_));
  Bytes cut = a_.endpoint->address();
  cut.pop_back();
  Bytes foreign = a_.endpoint->address();
  foreign[4 + 4] = std::byte{'?'};  // the provider's name
  for (const Bytes& one : {Bytes{}, Bytes(64, std::byte{1}), cut, foreign})
    EXPECT_FALSE(a_.endpoint->join(one));
}

// The guessed key belongs to no registration.
TEST_P(OfiEndpointTest, AGuessedKeyReachesNothingAndBreaksTheEndpoint) {
  if (std::string_view(GetParam()) == "shm") GTEST_SKIP() << "shm never ends it";
  ASSERT_NO_FATAL_FAILURE(meet());
  moved(OpKind::kWrite, pieces(1, 8, 0));
  const RemoteMemory guess{.key = 12345, .base = b_.address()};
  const auto key = a_.endpoint->keyOf(9, packed(guess));
  reachesNothing(key);
}

TEST_P(OfiEndpointTest, AnOpenEndpointReachesLaterMemory) {
  ASSERT_NO_FATAL_FAILURE(meet());
  moved(OpKind::kWrite, pieces(1, 8, 0));
  b_.memory.reset();
  auto later = b_.domain->add({.address = b_.address(), .bytes = b_.bytes.size()});
  ASSERT_TRUE(later) << later.error().text();
  b_.memory = *std::move(later);
  a_.key = a_.endpoint->keyOf(2, b_.memory->key());
  moved(OpKind::kWrite, pieces(1, 4096, 0));
  EXPECT_TRUE(same(b_, 0, 4096));
}

TEST_P(OfiEndpointTest, AnOpenEndpointDoesNotReachUnregisteredMemory) {
  if (std::string_view(GetParam()) == "shm") GTEST_SKIP() << "shm never ends it";
  if (isRdma(GetParam())) GTEST_SKIP() << "libfabric keeps it registered for the next who asks";
  ASSERT_NO_FATAL_FAILURE(meet());
  moved(OpKind::kWrite, pieces(1, 8, 0));
  b_.memory.reset();
  reachesNothing(a_.key);
}

// Each endpoint reaches all memory of the rail, also after the other endpoints are closed.
TEST_P(OfiEndpointTest, EachEndpointOfARailReachesItsMemory) {
  if (std::string_view(GetParam()) == "shm") GTEST_SKIP() << "shm does not survive it";
  ASSERT_NO_FATAL_FAILURE(meet());
  Side c;
  ASSERT_NO_FATAL_FAILURE(open(c));
  c.bytes = pattern();
  auto second = b_.domain->open();
  ASSERT_TRUE(second) << second.error().text();
  ASSERT_TRUE(c.endpoint->join((*second)->address()));
  ASSERT_TRUE((*second)->join(c.endpoint->address()));
  const auto key = c.endpoint->keyOf(1, b_.memory->key());
  const Piece there{
      .here = c.bytes.data(), .there = b_.address(), .bytes = 4096, .local = c.memory.get()};
  std::uint32_t posted = 0;
  Flush flush;
  EXPECT_TRUE(turnUntil([&] {
    (*second)->progress();
    c.endpoint->progress();
    if (posted > 0) return c.endpoint->ended(flush) || c.endpoint->broken();
    posted = c.endpoint->post(OpKind::kWrite, std::span(&there, 1), key).pieces;
    flush = c.endpoint->flush();
    return false;
  }));
  EXPECT_FALSE(c.endpoint->broken());
  EXPECT_TRUE(same(b_, 0, 4096));
  c.close();
  second->reset();
  testing::fillWith(b_.bytes, std::byte{0});
  moved(OpKind::kWrite, pieces(1, 4096, 0));
  EXPECT_TRUE(same(b_, 0, 4096));
}

TEST_P(OfiEndpointTest, APostToAClosedPeerBreaksTheEndpoint) {
  if (std::string_view(GetParam()) == "shm") GTEST_SKIP() << "shm does not survive it";
  ASSERT_NO_FATAL_FAILURE(meet());
  moved(OpKind::kWrite, pieces(1, 8, 0));
  const auto all = pieces(4, 512U << 10U, 512U << 10U);
  static_cast<void>(a_.endpoint->post(OpKind::kWrite, all, a_.key));
  auto flush = a_.endpoint->flush();
  b_.endpoint.reset();
  ASSERT_TRUE(turnUntil([&] {
    // An RDMA device copies without the process, and may have finished before the close.
    if (a_.endpoint->ended(flush)) {
      static_cast<void>(a_.endpoint->post(OpKind::kWrite, all, a_.key));
      flush = a_.endpoint->flush();
    }
    return !!a_.endpoint->broken();
  }));
  EXPECT_FALSE(a_.endpoint->ended(flush));
  EXPECT_NE(a_.endpoint->broken()->detail, "");
  std::cout << "a broken endpoint says: " << a_.endpoint->broken()->text() << "\n";
}

// A connected endpoint reports a closed peer at once. An addressed endpoint then accepts no
// request.
TEST_P(OfiEndpointTest, AClosedPeerIsNoticedWithNothingInFlight) {
  if (std::string_view(GetParam()) == "shm") GTEST_SKIP() << "shm does not survive it";
  ASSERT_NO_FATAL_FAILURE(meet());
  moved(OpKind::kWrite, pieces(1, 8, 0));
  b_.endpoint.reset();
  if (connected()) {
    EXPECT_TRUE(turnUntil([&] { return !!a_.endpoint->broken(); }));
    return;
  }
  for (int i = 0; i < 1000; ++i)
    a_.endpoint->progress();  // libfabric notices the closed connection
  EXPECT_FALSE(a_.endpoint->broken()) << "this provider tells, and the rest is not needed";
  const auto one = pieces(1, 4096, 0);
  EXPECT_TRUE(turnUntil([&] {
    static_cast<void>(a_.endpoint->post(OpKind::kWrite, one, a_.key));
    return !!a_.endpoint->broken();
  }));
}

// The endpoint closes in the middle of writes and reads. Afterwards neither the peer's writes nor
// its own reads change memory.
TEST_P(OfiEndpointTest, AClosedEndpointChangesNoMemory) {
  if (std::string_view(GetParam()) == "shm") GTEST_SKIP() << "shm does not survive it";
  ASSERT_NO_FATAL_FAILURE(meet());
  moved(OpKind::kWrite, pieces(1, 8, 0));
  const auto all = pieces(8, 512U << 10U, 512U << 10U);
  static_cast<void>(a_.endpoint->post(OpKind::kWrite, all, a_.key));
  std::vector<Piece> reads;
  for (std::size_t i = 0; i < 8; ++i)
    reads.push_back({.here = b_.bytes.data() + (i << 19U),
                     .there = a_.address() + (i << 19U),
                     .bytes = 512U << 10U,
                     .local = b_.memory.get()});
  static_cast<void>(b_.endpoint->post(OpKind::kRead, reads, b_.key));
  // Waits until the first bytes have arrived.
  ASSERT_TRUE(turnUntil([&] { return b_.bytes[9] == pattern()[9]; }));
  b_.endpoint.reset();
  testing::fillWith(b_.bytes, std::byte{0x77});
  for (int i = 0; i < 20000; ++i) a_.endpoint->progress();
  EXPECT_TRUE(testing::allAre(b_.bytes, std::byte{0x77}));
}

// Without RDMA the target's process takes part, so the target sleeps. An RDMA device wakes the
// writer instead. The device may finish within post(), which counts as a wake-up too.
TEST_P(OfiEndpointTest, AnArmedDescriptorReportsEvents) {
  ASSERT_NO_FATAL_FAILURE(meet());
  const bool rdma = isRdma(GetParam());
  Side& sleeper = rdma ? a_ : b_;
  Side& awake = rdma ? b_ : a_;
  if (sleeper.endpoint->fd() < 0) GTEST_SKIP() << "this provider has nothing to sleep on";
  moved(OpKind::kWrite, pieces(1, 8, 0));
  ASSERT_TRUE(turnUntil([&] { return sleeper.endpoint->arm(); }));
  const auto big = pieces(1, 512U << 10U, 0);
  ASSERT_EQ(a_.endpoint->post(OpKind::kWrite, big, a_.key).pieces, 1U);
  auto flush = a_.endpoint->flush();
  int wakes = 0;
  bool asleep = true;
  const auto until = Clock::now() + kLongest;
  while (!a_.endpoint->ended(flush) && Clock::now() < until) {
    awake.endpoint->progress();
    pollfd one{.fd = sleeper.endpoint->fd(), .events = POLLIN, .revents = 0};
    if (asleep && ::poll(&one, 1, 0) != 1) continue;
    wakes += asleep ? 1 : 0;
    sleeper.endpoint->progress();
    asleep = sleeper.endpoint->arm();
  }
  EXPECT_GT(wakes, 0);
  EXPECT_TRUE(same(b_, 0, 512U << 10U));
}

// A descriptor that reports events only while armed costs the kernel nothing for other packets.
TEST_P(OfiEndpointTest, AnUnarmedDescriptorReportsNothing) {
  ASSERT_NO_FATAL_FAILURE(meet());
  if (FI_MAJOR((*library())->fi_version()) > 1)
    GTEST_SKIP() << "skipped: the event queues of libfabric 2 report data";
  if (b_.endpoint->fd() < 0) GTEST_SKIP() << "this provider has nothing to sleep on";
  moved(OpKind::kWrite, pieces(1, 8, 0));
  ASSERT_TRUE(turnUntil([&] { return b_.endpoint->arm(); }));
  b_.endpoint->disarm();
  const auto piece = pieces(1, 4096, 0);
  ASSERT_EQ(a_.endpoint->post(OpKind::kWrite, piece, a_.key).pieces, 1U);
  auto flush = a_.endpoint->flush();
  pollfd one{.fd = b_.endpoint->fd(), .events = POLLIN, .revents = 0};
  bool told = false;
  EXPECT_TRUE(turnUntil([&] {
    told = told || ::poll(&one, 1, 0) != 0;
    return a_.endpoint->ended(flush);
  }));
  EXPECT_FALSE(told && !b_.endpoint->tellsUnarmed());
}

TEST_P(OfiEndpointTest, NamesItsTransportAndDevice) {
  ASSERT_NO_FATAL_FAILURE(open(a_));
  EXPECT_EQ(a_.endpoint->transport(), GetParam());
  EXPECT_EQ(a_.endpoint->transportDevices().rfind(std::string(GetParam()) + "/", 0), 0U);
}

TEST_P(OfiEndpointTest, DoorbellsAreSharedOverRdmaOrOnRequest) {
  const auto shared = [&] {
    return static_cast<const OfiDomain&>(*choose(settings_)->domains.front()).profile().doorbell;
  };
  EXPECT_EQ(shared(), isRdma(GetParam()));
  settings_.doorbell = Toggle::kOn;
  EXPECT_TRUE(shared());
  settings_.doorbell = Toggle::kOff;
  EXPECT_FALSE(shared());
}

INSTANTIATE_TEST_SUITE_P(Ofi, OfiEndpointTest,
                         ::testing::Values("tcp", "tcp;ofi_rxm", "net", "shm", "tcp_strict",
                                           "verbs;ofi_rxm"),
                         [](const auto& one) {
                           std::string name(one.param);
                           std::replace(name.begin(), name.end(), ';', '_');
                           return name;
                         });

}  // namespace
}  // namespace viaduct::ofi
