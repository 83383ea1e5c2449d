// Two conduits in one process over TCP, by messages and by puts.
#include "core/fabric/conduit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "backends/ucx/context.h"
#include "backends/ucx/library.h"
#include "support/bytes.h"
#include "support/ucx.h"

namespace viaduct::ucx {
namespace {

using core::fabric::Flush;
using core::fabric::Piece;
using core::fabric::RemoteKey;

constexpr auto kLongest = std::chrono::seconds(20);

// One side: a context, a conduit, and memory of which the other may reach the first half.
struct Side {
  std::unique_ptr<Context> context;
  std::unique_ptr<core::fabric::Registration> memory;
  std::unique_ptr<core::fabric::Conduit> conduit;
  std::vector<std::byte> bytes = std::vector<std::byte>(4U << 20U);
  RemoteKey key = nullptr;  // to the other's memory

  std::size_t half() const { return bytes.size() / 2; }
  std::uint64_t address() const { return reinterpret_cast<std::uintptr_t>(bytes.data()); }
  void close() {
    conduit.reset();
    memory.reset();
    context.reset();
  }
};

class Conduits : public ::testing::Test {
 protected:
  void SetUp() override {
    VIADUCT_SKIP_IF_UCX_CRASHES("ucx");
    if (const auto there = library(); !there) GTEST_SKIP() << there.error().text();
  }
  void TearDown() override {
    a_.close();
    b_.close();
  }
  static void open(Side& side, bool by_messages) {
    auto context = Context::open(**library(), {.transports = "tcp",
                                               .devices = userHasSet("UCX_NET_DEVICES") ? "" : "lo",
                                               .by_messages = by_messages});
    ASSERT_TRUE(context) << context.error().text();
    side.context = *std::move(context);
    auto memory = side.context->add(side.address(), side.half());
    ASSERT_TRUE(memory) << memory.error().text();
    side.memory = *std::move(memory);
    auto conduit = side.context->open();
    ASSERT_TRUE(conduit) << conduit.error().text();
    side.conduit = *std::move(conduit);
  }
  void meet(bool a_by_messages, bool b_by_messages) {
    ASSERT_NO_FATAL_FAILURE(open(a_, a_by_messages));
    ASSERT_NO_FATAL_FAILURE(open(b_, b_by_messages));
    ASSERT_TRUE(a_.conduit->join(b_.conduit->address()));
    ASSERT_TRUE(b_.conduit->join(a_.conduit->address()));
    testing::fillRandom(a_.bytes, 1);
  }
  bool turnUntil(const std::function<bool()>& done) {
    for (const auto until = Clock::now() + kLongest; !done();) {
      if (Clock::now() > until) return false;
      for (Side* side : {&a_, &b_}) side->conduit->progress();
    }
    return true;
  }
  // False: the way broke before all was moved.
  bool moved(OpKind kind, std::span<const Piece> pieces) {
    std::size_t at = 0;
    EXPECT_TRUE(turnUntil([&] {
      at += a_.conduit->post(kind, pieces.subspan(at), a_.key).pieces;
      return at == pieces.size() || a_.conduit->broken() || b_.conduit->broken();
    }));
    Flush flush = a_.conduit->flush();
    bool ended = false;
    EXPECT_TRUE(turnUntil([&] {
      ended = a_.conduit->ended(flush);
      return ended || a_.conduit->broken() || b_.conduit->broken();
    }));
    return ended;
  }
  std::vector<Piece> pieces(std::size_t count, std::size_t bytes, std::size_t stride) {
    std::vector<Piece> out;
    for (std::size_t i = 0; i < count; ++i)
      out.push_back({.here = a_.bytes.data() + i * stride,
                     .there = b_.address() + i * stride,
                     .bytes = bytes,
                     .local = a_.memory.get()});
    return out;
  }
  bool same(std::size_t from, std::size_t bytes) const {
    return testing::same(std::span(a_.bytes).subspan(from, bytes),
                         std::span(b_.bytes).subspan(from, bytes));
  }

  Side a_, b_;
};

class EitherWay : public Conduits, public ::testing::WithParamInterface<bool> {
 protected:
  void meetSo() {
    meet(GetParam(), GetParam());
    if (HasFatalFailure()) return;
    a_.key = a_.conduit->keyOf(1, b_.memory->key());
    ASSERT_NE(a_.key, nullptr);
  }
};

TEST_P(EitherWay, AWriteIsThereWhenItsFlushHasEnded) {
  ASSERT_NO_FATAL_FAILURE(meetSo());
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{4096}, std::size_t{60} << 10U,
                                  (std::size_t{60} << 10U) + 1, std::size_t{1} << 20U}) {
    testing::fillWith(b_.bytes, std::byte{0});
    ASSERT_TRUE(moved(OpKind::kWrite, pieces(1, bytes, 0))) << bytes;
    EXPECT_TRUE(same(0, bytes)) << bytes;
    EXPECT_EQ(b_.bytes[bytes], std::byte{0}) << "nothing beyond it";
  }
}

TEST_P(EitherWay, AReadIsHereWhenItsFlushHasEnded) {
  ASSERT_NO_FATAL_FAILURE(meetSo());
  testing::fillRandom(b_.bytes, 7);
  testing::fillWith(a_.bytes, std::byte{0});
  ASSERT_TRUE(moved(OpKind::kRead, pieces(3, 300U << 10U, 512U << 10U)));
  for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(same(i << 19U, 300U << 10U)) << i;
  EXPECT_EQ(a_.bytes[300U << 10U], std::byte{0});
}

TEST_P(EitherWay, ManyPiecesLandInTheirPlacesAndNowhereElse) {
  ASSERT_NO_FATAL_FAILURE(meetSo());
  ASSERT_TRUE(moved(OpKind::kWrite, pieces(1000, 700, 2000)));
  for (std::size_t i = 0; i < 1000; ++i) {
    ASSERT_TRUE(same(i * 2000, 700)) << i;
    ASSERT_EQ(b_.bytes[i * 2000 + 700], std::byte{0}) << i;
  }
  ASSERT_TRUE(moved(OpKind::kRead, pieces(1000, 1, 3)));
}

// Whoever knows no key of ours gets nothing, though UCX has let him in.
TEST_F(Conduits, ByMessagesOnlyWhatIsRegisteredIsReached) {
  for (const OpKind kind : {OpKind::kWrite, OpKind::kRead}) {
    for (const char* wrong : {"key", "place", "withdrawn"}) {
      a_.close();
      b_.close();
      ASSERT_NO_FATAL_FAILURE(meet(true, true));
      testing::fillWith(b_.bytes, std::byte{0x22});
      const auto before = a_.bytes;
      auto key = b_.memory->key();
      if (wrong == std::string_view("key")) key[0] ^= std::byte{1};
      a_.key = a_.conduit->keyOf(1, key);
      ASSERT_NE(a_.key, nullptr);
      auto one = pieces(1, 64, 0);
      if (wrong == std::string_view("place")) one[0].there = b_.address() + b_.half() - 63;
      if (wrong == std::string_view("withdrawn")) b_.memory.reset();
      EXPECT_FALSE(moved(kind, one)) << wrong;
      ASSERT_TRUE(b_.conduit->broken()) << wrong;
      EXPECT_EQ(b_.conduit->broken()->code, Code::kDenied) << b_.conduit->broken()->text();
      EXPECT_TRUE(std::all_of(b_.bytes.begin(), b_.bytes.end(), [](std::byte byte) {
        return byte == std::byte{0x22};
      })) << wrong;
      EXPECT_EQ(a_.bytes, before) << wrong;
    }
  }
}

// UCX's own puts need no key that anybody checks. An end that goes by messages does not hear them.
TEST_F(Conduits, ByMessagesAPutOfUcxsOwnLandsNowhere) {
  ASSERT_NO_FATAL_FAILURE(meet(false, true));
  Side other;
  ASSERT_NO_FATAL_FAILURE(open(other, false));
  a_.key = a_.conduit->keyOf(1, other.memory->key());
  ASSERT_NE(a_.key, nullptr);
  const auto one = pieces(1, 64, 0);
  ASSERT_EQ(a_.conduit->post(OpKind::kWrite, one, a_.key).pieces, 1U);
  Flush flush = a_.conduit->flush();
  const auto until = Clock::now() + std::chrono::milliseconds(300);
  while (Clock::now() < until && !a_.conduit->ended(flush))
    for (Side* side : {&a_, &b_}) side->conduit->progress();
  EXPECT_EQ(std::count(b_.bytes.begin(), b_.bytes.end(), std::byte{0}),
            static_cast<std::ptrdiff_t>(b_.bytes.size()));
  a_.conduit->letGo(flush);
  a_.conduit.reset();
  other.close();
}

TEST_F(Conduits, ByMessagesAKeyThatIsNoneIsNoKey) {
  ASSERT_NO_FATAL_FAILURE(meet(true, true));
  EXPECT_EQ(a_.conduit->keyOf(2, {}), nullptr);
  EXPECT_EQ(a_.conduit->keyOf(2, core::fabric::Bytes(9)), nullptr);
  EXPECT_NE(a_.conduit->keyOf(2, b_.memory->key()), nullptr);
  a_.conduit->retire(2);
  EXPECT_EQ(a_.conduit->keyOf(2, {}), nullptr) << "the old one is forgotten";
}

INSTANTIATE_TEST_SUITE_P(Over, EitherWay, ::testing::Bool(),
                         [](const auto& chosen) { return chosen.param ? "Messages" : "Puts"; });

}  // namespace
}  // namespace viaduct::ucx
