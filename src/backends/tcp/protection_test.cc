// Tests the protection of a data socket's bytes, between two ends without a socket.
#include "backends/tcp/protection.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "backends/tcp/half_testing.h"
#include "base/net/noting_aead_testing.h"
#include "base/random.h"
#include "support/bytes.h"

namespace viaduct::tcp {
namespace {

using Stream = std::vector<std::byte>;
constexpr Privacy kLevels[] = {Privacy::kFrames, Privacy::kIntegrity, Privacy::kEncrypted};

std::string nameOf(Privacy level) { return std::string(wayOf({.level = level}, true)); }

TEST(Agree, TheStrongerWishHolds) {
  const auto levelOf = [](Privacy a, Privacy b, bool same_host) {
    const auto one = agree({.wish = a}, {.wish = b}, same_host);
    const auto other = agree({.wish = b}, {.wish = a}, same_host);
    EXPECT_TRUE(one && other && *one == *other) << "both ends decide alike";
    return one->level;
  };
  using enum Privacy;
  EXPECT_EQ(levelOf(kAuto, kAuto, false), kFrames);
  EXPECT_EQ(levelOf(kAuto, kAuto, true), kOff);
  EXPECT_EQ(levelOf(kAuto, kIntegrity, true), kIntegrity);
  EXPECT_EQ(levelOf(kFrames, kEncrypted, false), kEncrypted);
  EXPECT_EQ(levelOf(kRequired, kAuto, false), kEncrypted);
  for (const Privacy one : {kAuto, kOff, kFrames, kIntegrity, kEncrypted})
    EXPECT_EQ(levelOf(kOff, one, false), kOff) << "off by hand";
}

TEST(Agree, RequiredRefusesAPeerThatIsOff) {
  const auto here = agree({.wish = Privacy::kRequired}, {.wish = Privacy::kOff}, false);
  ASSERT_FALSE(here);
  EXPECT_EQ(here.error().code, Code::kDenied);
  EXPECT_NE(here.error().text().find("the peer has turned it off"), std::string::npos);
  const auto there = agree({.wish = Privacy::kOff}, {.wish = Privacy::kRequired}, false);
  ASSERT_FALSE(there);
  EXPECT_NE(there.error().text().find("this agent has turned it off"), std::string::npos);
  for (const auto* const one : {&here, &there})
    EXPECT_EQ(one->error().remedy, "set VIADUCT_PRIVACY=encrypted at both ends");
}

TEST(Agree, WithoutAesAtOneEndBothUseChaCha) {
  const PrivacyOffer fast{.wish = Privacy::kEncrypted, .fast_aes = true};
  const PrivacyOffer slow{.wish = Privacy::kEncrypted, .fast_aes = false};
  EXPECT_EQ(agree(fast, fast, false)->kind, base::AeadKind::kAesGcm);
  EXPECT_EQ(agree(fast, slow, false)->kind, base::AeadKind::kChaCha);
  EXPECT_EQ(agree(slow, fast, false)->kind, base::AeadKind::kChaCha);
}

TEST(WayOf, SaysWhatIsInForce) {
  EXPECT_EQ(wayOf({}, true), "socket");
  EXPECT_EQ(wayOf({}, false), "socket+off");
  EXPECT_EQ(wayOf({.level = Privacy::kFrames}, false), "socket+frames");
  EXPECT_EQ(wayOf({.level = Privacy::kEncrypted}, true), "socket+encrypted");
}

// A dialer that writes and reads memory of an acceptor. Each has one pin.
class Pair {
 public:
  static constexpr std::size_t kBytes = std::size_t{200} << 10U;

  explicit Pair(const Protection& protection, std::uint64_t blocks_per_key = base::kBlocksPerKey)
      : here(kBytes),
        there(kBytes),
        dialer(core::PinRights(), protection, keys(protection, true, blocks_per_key)),
        acceptor(core::PinRights(), protection, keys(protection, false, blocks_per_key)) {
    testing::fillRandom(here, 1);
    testing::fillRandom(there, 2);
    for (auto [half, memory] : {std::pair(&dialer, &here), std::pair(&acceptor, &there)}) {
      half->pins.add(0, at(*memory), kBytes);
      half->remote.add(0, 1);
    }
  }
  static std::uint64_t at(const Stream& memory, std::size_t offset = 0) {
    return reinterpret_cast<std::uintptr_t>(memory.data()) + offset;
  }
  move::Job& post(OpKind kind, std::size_t from, std::size_t bytes) {
    ops_.push_back({{.local = at(here, from), .remote = at(there, from), .bytes = bytes}});
    return dialer.post(kind, ops_.back());
  }
  // Moves all bytes in both directions, in pieces of this size. Returns the first mistake.
  std::string run(std::size_t piece = std::size_t{1} << 20U) {
    for (bool moved = true; moved;) {
      moved = false;
      for (auto [from, to] : {std::pair(&dialer, &acceptor), std::pair(&acceptor, &dialer)}) {
        const Stream bytes = from->take(piece);
        moved = moved || !bytes.empty();
        if (const auto wrong = to->give(bytes); !wrong.empty()) return std::string(wrong);
      }
    }
    return "";
  }

  Stream here, there;
  Half dialer, acceptor;

 private:
  static SocketKeys keys(const Protection& protection, bool dialer, std::uint64_t blocks) {
    return std::move(*keysOf(protection, LinkKey{3}, {.epoch = 7, .count = 1}, dialer, blocks));
  }
  std::deque<std::vector<core::Op>> ops_;
};

TEST(Protection, MovesBytesAtEveryLevelAndInAnyPieces) {
  for (const Privacy level : kLevels)
    for (const base::AeadKind kind : {base::AeadKind::kAesGcm, base::AeadKind::kChaCha})
      for (const std::size_t piece : {1U, 77U, 16'405U, 1U << 20U}) {
        if (piece == 1 && kind == base::AeadKind::kChaCha) continue;
        // 500 blocks: keys are replaced several times.
        Pair pair({.level = level, .kind = kind}, 500);
        const std::size_t bytes = piece == 1 ? 20'000 : 100'000;
        const Stream before = pair.there;
        const move::Job& written = pair.post(OpKind::kWrite, 5, bytes);
        const move::Job& read = pair.post(OpKind::kRead, 5 + bytes, 77'777);
        ASSERT_EQ(pair.run(piece), "") << nameOf(level) << piece;
        EXPECT_EQ(written.moved.bytes, bytes);
        EXPECT_EQ(read.moved.bytes, 77'777U);
        EXPECT_EQ(std::memcmp(pair.there.data() + 5, pair.here.data() + 5, bytes), 0);
        EXPECT_EQ(std::memcmp(pair.here.data() + 5 + bytes, before.data() + 5 + bytes, 77'777), 0);
      }
}

TEST(Protection, OnlyEncryptionHidesThePayload) {
  for (const Privacy level : kLevels) {
    Pair pair({.level = level});
    pair.post(OpKind::kWrite, 0, 4096);
    const Stream sent = pair.dialer.take(1U << 20U);
    const auto found = std::search(sent.begin(), sent.end(), pair.here.begin() + 100,
                                   pair.here.begin() + 132) != sent.end();
    EXPECT_EQ(found, level != Privacy::kEncrypted) << nameOf(level);
  }
}

// Tells for each byte of a stream whether a tag proves it. At the level "frames" that are heads,
// entries, trailers and tags, but not the payload. In records it is everything.
std::vector<bool> provenBytes(Privacy level, const Stream& stream) {
  std::vector<bool> out(stream.size(), true);
  if (level != Privacy::kFrames) return out;
  for (std::size_t at = 0; at + kHeadBytes <= stream.size();) {
    FrameHead head;
    EXPECT_EQ(decodeHead(std::span(stream).subspan(at).first<kHeadBytes>(), head), "");
    at += kHeadBytes + head.entries * kEntryBytes + base::kTagBytes;
    for (std::uint64_t i = 0; i < head.payload; ++i) out[at + i] = false;
    at += head.payload;
    if (head.type == DataFrameType::kReadData) at += kTrailerBytes + base::kTagBytes;
  }
  return out;
}

// An attacker changes the stream to one end. The other direction is not delivered.
struct Attack {
  const char* name;
  // Changes the stream. False: nothing was changed.
  std::function<bool(Stream&, base::Random&)> change;
};

Stream piece(const Stream& from, std::size_t at, std::size_t bytes) {
  const auto first = from.begin() + static_cast<std::ptrdiff_t>(at);
  return {first, first + static_cast<std::ptrdiff_t>(bytes)};
}

// The positions of records, or of frames.
std::vector<std::size_t> boundaries(Privacy level, const Stream& stream) {
  std::vector<std::size_t> out{0};
  for (std::size_t at = 0; at < stream.size(); out.push_back(at)) {
    if (level == Privacy::kFrames) {
      FrameHead head;
      EXPECT_EQ(decodeHead(std::span(stream).subspan(at).first<kHeadBytes>(), head), "");
      at += kHeadBytes + head.entries * kEntryBytes + base::kTagBytes + head.payload;
      if (head.type == DataFrameType::kReadData) at += kTrailerBytes + base::kTagBytes;
    } else {
      at += kRecordHead + base::loadLittle<std::uint32_t>(stream.data() + at) + base::kTagBytes;
    }
  }
  return out;
}

// The bytes that a dialer sends to write three parts of `here` to `there`.
struct Recording {
  static constexpr std::size_t kWrite = 7000, kBytes = 4 * kWrite;

  explicit Recording(Privacy level) : here(kBytes), there(kBytes) {
    testing::fillRandom(here, 1);
    Half dialer(core::PinRights(), {.level = level}, keys(level, true));
    dialer.pins.add(0, Pair::at(here), kBytes);
    dialer.remote.add(0, 1);
    for (std::size_t i = 0; i < 3; ++i) {
      const std::vector<core::Op> ops{{.local = Pair::at(here, i * kWrite),
                                       .remote = Pair::at(there, i * kWrite),
                                       .bytes = kWrite}};
      dialer.post(OpKind::kWrite, ops);
      const Stream part = dialer.take(1U << 20U);
      stream.insert(stream.end(), part.begin(), part.end());
    }
  }
  static SocketKeys keys(Privacy level, bool dialer) {
    return std::move(*keysOf({.level = level}, LinkKey{3}, {.epoch = 7, .count = 1}, dialer));
  }

  Stream here, there, stream;
};

// An acceptor that gets a changed recording.
class Attacked {
 public:
  Attacked(Privacy level, Recording& recording)
      : stream(recording.stream),
        level_(level),
        recording_(recording),
        acceptor_(core::PinRights(), {.level = level}, Recording::keys(level, false)) {
    std::fill(recording_.there.begin(), recording_.there.end(), kUntouched);
    acceptor_.pins.add(0, Pair::at(recording_.there), Recording::kBytes);
  }
  // Gives the stream to the acceptor, and returns its mistake.
  std::string deliver(base::Random& random) {
    for (std::size_t at = 0; at < stream.size();) {
      const std::size_t part = std::min<std::size_t>(1 + random.below(9000), stream.size() - at);
      if (const auto wrong = acceptor_.give(piece(stream, at, part)); !wrong.empty())
        return std::string(wrong);
      at += part;
    }
    return "";
  }
  // Each byte is as before, or as written. At the level "frames" the payload of the last write may
  // be changed, but never its address.
  void expectNothingForged(const std::string& what) const {
    const Stream& there = recording_.there;
    const auto writes = there.begin() + static_cast<std::ptrdiff_t>(3 * Recording::kWrite);
    EXPECT_TRUE(std::all_of(writes, there.end(), [](std::byte b) { return b == kUntouched; }))
        << what;
    if (level_ == Privacy::kFrames) return;
    for (std::size_t i = 0; i < 3 * Recording::kWrite; ++i)
      if (there[i] != kUntouched && there[i] != recording_.here[i])
        FAIL() << what << ": byte " << i << " is of nobody";
  }

  Stream stream;

 private:
  static constexpr std::byte kUntouched{0};
  const Privacy level_;
  Recording& recording_;
  Half acceptor_;
};

class ProtectionAgainst : public ::testing::TestWithParam<Privacy> {};

INSTANTIATE_TEST_SUITE_P(At, ProtectionAgainst, ::testing::ValuesIn(kLevels),
                         [](const auto& level) {
                           return nameOf(level.param).substr(std::string("socket+").size());
                         });

TEST_P(ProtectionAgainst, AChangedBitAtTenThousandPlaces) {
  base::Random random(1);
  Recording recording(GetParam());
  for (int i = 0; i < 10'000; ++i) {
    Attacked one(GetParam(), recording);
    const auto proven = provenBytes(GetParam(), one.stream);
    std::size_t at = random.below(one.stream.size());
    while (!proven[at]) at = random.below(one.stream.size());
    one.stream[at] ^= static_cast<std::byte>(1U << random.below(8));
    const std::string wrong = one.deliver(random);
    // If the change made a length longer, the acceptor waits for more bytes. Zeros then show the
    // mistake.
    if (wrong.empty()) {
      one.stream.assign(one.stream.size(), std::byte{0});
      ASSERT_NE(one.deliver(random), "") << "place " << at;
    }
    one.expectNothingForged("place " + std::to_string(at));
    if (HasFatalFailure()) return;
  }
}

TEST_P(ProtectionAgainst, CutRepeatedAndReorderedParts) {
  base::Random random(2);
  Recording recording(GetParam());
  const auto bounds = boundaries(GetParam(), recording.stream);
  ASSERT_GE(bounds.size(), 4U);
  const auto partOf = [&](const Stream& from, std::size_t i) {
    return piece(from, bounds[i], bounds[i + 1] - bounds[i]);
  };
  const auto insert = [&](Stream& into, std::size_t at, const Stream& part) {
    into.insert(into.begin() + static_cast<std::ptrdiff_t>(at), part.begin(), part.end());
  };
  const auto erase = [&](Stream& from, std::size_t at, std::size_t bytes) {
    const auto first = from.begin() + static_cast<std::ptrdiff_t>(at);
    from.erase(first, first + static_cast<std::ptrdiff_t>(bytes));
  };
  const std::vector<Attack> attacks{
      {"a dropped one",
       [&](Stream& stream, base::Random&) {
         erase(stream, bounds[0], bounds[1] - bounds[0]);
         return true;
       }},
      {"a repeated one",
       [&](Stream& stream, base::Random&) {
         insert(stream, bounds[1], partOf(stream, 0));
         return true;
       }},
      {"a late repeated one",
       [&](Stream& stream, base::Random&) {
         insert(stream, bounds[2], partOf(stream, 0));
         return true;
       }},
      {"swapped ones",
       [&](Stream& stream, base::Random&) {
         const Stream second = partOf(stream, 1);
         erase(stream, bounds[1], second.size());
         insert(stream, 0, second);
         return true;
       }},
      {"a cut anywhere", [](Stream& stream, base::Random& dice) {
         const std::size_t at = dice.below(stream.size() - 1);
         const std::size_t bytes =
             1 + dice.below(std::min<std::size_t>(stream.size() - at - 1, 99));
         stream.erase(stream.begin() + static_cast<std::ptrdiff_t>(at),
                      stream.begin() + static_cast<std::ptrdiff_t>(at + bytes));
         return true;
       }}};
  for (int i = 0; i < 1000; ++i)
    for (const Attack& attack : attacks) {
      Attacked one(GetParam(), recording);
      ASSERT_TRUE(attack.change(one.stream, random));
      const std::string wrong = one.deliver(random);
      one.expectNothingForged(attack.name);
      if (attack.name == attacks.back().name) continue;
      ASSERT_EQ(wrong, kNotGenuine) << attack.name;
    }
}

// The peer's answer to a read ends with a status. Its frame may not be forged either.
TEST_P(ProtectionAgainst, AForgedEndOfARead) {
  base::Random random(3);
  for (int i = 0; i < 500; ++i) {
    Pair pair({.level = GetParam()});
    const move::Job& read = pair.post(OpKind::kRead, 0, 3000);
    ASSERT_EQ(pair.acceptor.give(pair.dialer.take(1U << 20U)), "");
    Stream answer = pair.acceptor.take(1U << 20U);
    const std::size_t trailer = kTrailerBytes + base::kTagBytes;
    answer[answer.size() - 1 - random.below(trailer)] ^=
        static_cast<std::byte>(1U << random.below(8));
    EXPECT_NE(pair.dialer.give(answer), "");
    EXPECT_EQ(read.moved.bytes, 0U);
  }
}

// The bytes of another socket, direction, life, link or session are not genuine.
TEST_P(ProtectionAgainst, BytesOfAnotherSocket) {
  const Protection protection{.level = GetParam()};
  const SocketHello hello{.epoch = 7, .count = 2};
  SocketHello other_index = hello, other_life = hello, other_epoch = hello, other_link = hello;
  other_index.index = 1;
  other_life.life = 1;
  other_epoch.epoch = 8;
  other_link.link[0] = 1;
  const auto sends = [&](const SocketHello& which, bool dialer, const LinkKey& key = {3}) {
    Stream memory(100);
    Half half(core::PinRights(), protection, std::move(*keysOf(protection, key, which, dialer)));
    half.pins.add(0, Pair::at(memory), memory.size());
    half.remote.add(0, 1);
    const std::vector<core::Op> ops{{.local = Pair::at(memory), .remote = 0, .bytes = 8}};
    half.post(OpKind::kWrite, ops);
    return half.take(1000);
  };
  const auto hears = [&](const Stream& bytes) {
    Half half(core::PinRights(), protection,
              std::move(*keysOf(protection, LinkKey{3}, hello, false)));
    return half.give(bytes);
  };
  EXPECT_EQ(hears(sends(hello, true)), "");
  EXPECT_EQ(hears(sends(hello, false)), kNotGenuine) << "reflected";
  EXPECT_EQ(hears(sends(hello, true, {4})), kNotGenuine) << "another session";
  for (const SocketHello& which : {other_index, other_life, other_epoch, other_link})
    EXPECT_EQ(hears(sends(which, true)), kNotGenuine);
}

// The end of an answer changes after it was sealed, when its memory is withdrawn.
TEST_P(ProtectionAgainst, NoNonceSealsTwoEndsOfAnAnswer) {
  const Protection protection{.level = GetParam()};
  const SocketHello hello{.epoch = 7, .count = 1};
  Stream here(120'000), there(120'000);
  Half dialer(core::PinRights(), protection,
              std::move(*keysOf(protection, LinkKey{3}, hello, true)));
  base::NotingAead::Uses uses;
  auto keys = std::move(*keysOf(protection, LinkKey{3}, hello, false));
  keys.sealing = std::move(*base::RecordKeys::open(std::make_unique<base::NotingAead>(uses), {1}));
  Half acceptor(core::PinRights(), protection, std::move(keys));
  dialer.pins.add(0, Pair::at(here), here.size());
  dialer.remote.add(0, acceptor.pins.add(0, Pair::at(there), there.size()));
  const std::vector<core::Op> ops{
      {.local = Pair::at(here), .remote = Pair::at(there), .bytes = here.size()}};
  dialer.post(OpKind::kRead, ops);
  ASSERT_EQ(acceptor.give(dialer.take(1U << 20U)), "");
  EXPECT_FALSE(acceptor.take(1000).empty());
  acceptor.withdraw(0);
  EXPECT_GT(acceptor.take(1U << 20U).size(), here.size() - 1000);
  EXPECT_FALSE(uses.empty());
  for (const auto& [nonce, messages] : uses) EXPECT_EQ(messages.size(), 1U);
}

// Memory that is withdrawn while it is sent: the end of the frame changes, and both ends agree.
TEST_P(ProtectionAgainst, NothingBreaksWhenAPinIsWithdrawn) {
  for (std::size_t sent = 0; sent < 150'000; sent += 7'001) {
    Pair pair({.level = GetParam()});
    const move::Job& read = pair.post(OpKind::kRead, 0, 120'000);
    ASSERT_EQ(pair.acceptor.give(pair.dialer.take(1U << 20U)), "");
    ASSERT_EQ(pair.dialer.give(pair.acceptor.take(sent)), "");
    pair.acceptor.withdraw(0);
    ASSERT_EQ(pair.run(), "") << sent;
    EXPECT_TRUE(read.moved.bytes == 0 || read.moved.bytes == 120'000) << sent;
  }
}

}  // namespace
}  // namespace viaduct::tcp
