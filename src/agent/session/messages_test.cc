#include "agent/session/messages.h"

#include <gtest/gtest.h>
#include <viaduct/card.h>

#include <string>
#include <vector>

#include "base/net/checksum.h"
#include "base/printable.h"
#include "base/random.h"

namespace viaduct::agent {
namespace {

using base::Bytes;

Bytes blob(std::size_t size) { return Bytes(size, std::byte{0x5a}); }

Hello fullHello() {
  return {.name = "host-1-ab",
          .agent = {1, 2},
          .process = {3, 4},
          .boot = "b00t",
          .unix_name = "viaduct-1",
          .addresses = {"10.0.0.1:1", "[::1]:2"},
          .last_epoch = 77,
          .detect_ms = 2000,
          .backends = {{"local", blob(3)}, {"tcp", blob(0)}}};
}

PinMessage fullPin() {
  return {.info = {.label = std::string("kv\0cache", 8),
                   .kind = MemoryKind::kDevice,
                   .device = 3,
                   .address = 0x7f0000001000,
                   .bytes = 1U << 30U,
                   .slot = 12,
                   .access = MemoryAccess::kReadOnly},
          .generation = 7,
          .keys = {{"local", blob(40)}, {"tcp", blob(8)}}};
}

// Every truncated message is refused, and so is one more byte.
template <class Message>
void refusesOtherLengths(const Message& message) {
  Bytes bytes = base::encode(message);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const auto decoded = base::decode<Message>(std::span(bytes).first(size));
    ASSERT_FALSE(decoded) << size;
    EXPECT_EQ(decoded.error().code, Code::kProtocol);
  }
  bytes.push_back(std::byte{0});
  EXPECT_FALSE(base::decode<Message>(bytes));
}

TEST(Messages, ComeOutAsTheyWentIn) {
  EXPECT_EQ(*base::decode<Hello>(base::encode(fullHello())), fullHello());
  EXPECT_EQ(*base::decode<Hello>(base::encode(Hello{.name = "n"})), Hello{.name = "n"});
  EXPECT_EQ(*base::decode<PinMessage>(base::encode(fullPin())), fullPin());
  EXPECT_EQ(base::decode<UnpinMessage>(base::encode(UnpinMessage{.slot = 9}))->slot, 9U);
  EXPECT_EQ(base::decode<ByeMessage>(base::encode(ByeMessage{.why = "done"}))->why, "done");
  const Error why{
      .code = Code::kBusy, .operation = "a", .detail = "b", .cause = "c", .remedy = "d"};
  EXPECT_EQ(base::decode<RefuseMessage>(base::encode(RefuseMessage{why}))->why.text(), why.text());
  const ResumeMessage resume{.epoch = 3, .heard = 1U << 20U, .proof = {1, 2, 3}};
  EXPECT_EQ(*base::decode<ResumeMessage>(base::encode(resume)), resume);

  const LeaseEndedMessage ended{.number = 5, .outcome = LeaseState::kExpired};
  const auto ended_back = base::decode<LeaseEndedMessage>(base::encode(ended));
  ASSERT_TRUE(ended_back);
  EXPECT_EQ(ended_back->number, 5U);
  EXPECT_EQ(ended_back->outcome, LeaseState::kExpired);
  EXPECT_EQ(base::decode<LeaseMessage>(base::encode(LeaseMessage{.number = 6}))->number, 6U);

  Bytes message = base::encode(BackendMessage{.backend = "tcp"});
  message.push_back(std::byte{7});
  const auto back = base::decode<BackendMessage>(message);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->backend, "tcp");
  ASSERT_EQ(back->bytes.size(), 1U);
  EXPECT_EQ(back->bytes[0], std::byte{7});
}

TEST(Messages, AboutLeasesHaveANumberAndAnOutcomeOfTheOwner) {
  EXPECT_FALSE(base::decode<LeaseMessage>(base::encode(LeaseMessage{.number = 0})));
  EXPECT_FALSE(base::decode<LeaseEndedMessage>(base::encode(LeaseEndedMessage{.number = 0})));
  for (const LeaseState outcome : {LeaseState::kLive, LeaseState::kEnding, LeaseState::kReturned,
                                   LeaseState::kPeerLost, static_cast<LeaseState>(99)})
    EXPECT_FALSE(base::decode<LeaseEndedMessage>(
        base::encode(LeaseEndedMessage{.number = 1, .outcome = outcome})));
}

TEST(Messages, AboutDrainsHaveTheNumberOfAnAnnouncement) {
  const DrainLeftMessage left{.number = 3, .transfers = 2, .bytes = 1U << 20U};
  EXPECT_EQ(*base::decode<DrainLeftMessage>(base::encode(left)), left);
  EXPECT_EQ(base::decode<DrainingMessage>(base::encode(DrainingMessage{.number = 4}))->number, 4U);
  EXPECT_FALSE(base::decode<DrainLeftMessage>(base::encode(DrainLeftMessage{})));
  EXPECT_FALSE(base::decode<DrainingMessage>(base::encode(DrainingMessage{})));
}

TEST(Messages, AppendKeepsTheBytesBefore) {
  Bytes out = blob(2);
  base::append(out, UnpinMessage{.slot = 1});
  EXPECT_EQ(out.size(), 6U);
  EXPECT_EQ(out[1], std::byte{0x5a});
}

TEST(Messages, EveryOtherLengthIsRefused) {
  refusesOtherLengths(LeaseEndedMessage{.number = 1});
  refusesOtherLengths(LeaseMessage{.number = 1});
  refusesOtherLengths(DrainingMessage{.number = 1});
  refusesOtherLengths(DrainLeftMessage{.number = 1});
  refusesOtherLengths(fullHello());
  refusesOtherLengths(fullPin());
  refusesOtherLengths(UnpinMessage{.slot = 1});
  refusesOtherLengths(ByeMessage{.why = "why"});
  refusesOtherLengths(ResumeMessage{.epoch = 1});
  refusesOtherLengths(RefuseMessage{{.detail = "x"}});
  EXPECT_FALSE(base::decode<BackendMessage>({}));
}

TEST(Messages, ValuesBeyondTheLimitsAreRefused) {
  Hello long_name = fullHello();
  long_name.name.assign(kMaxNameBytes + 1, 'n');
  EXPECT_FALSE(base::decode<Hello>(base::encode(long_name)));
  Hello addresses = fullHello();
  addresses.addresses.assign(kMaxAddresses + 1, "a:1");
  EXPECT_FALSE(base::decode<Hello>(base::encode(addresses)));
  Hello backends = fullHello();
  backends.backends.assign(kMaxBackends + 1, {"b", {}});
  EXPECT_FALSE(base::decode<Hello>(base::encode(backends)));
  Hello address = fullHello();
  address.backends[0].bytes = blob(kMaxBlobBytes + 1);
  EXPECT_FALSE(base::decode<Hello>(base::encode(address)));
  PinMessage label = fullPin();
  label.info.label.assign(kMaxLabelBytes + 1, 'l');
  EXPECT_FALSE(base::decode<PinMessage>(base::encode(label)));
  PinMessage wraps = fullPin();
  wraps.info.address = ~std::uint64_t{0} - 10;
  EXPECT_FALSE(base::decode<PinMessage>(base::encode(wraps)));
  Bytes kind = base::encode(fullPin());
  kind[4] = std::byte{5};
  EXPECT_FALSE(base::decode<PinMessage>(kind));
  Bytes access = base::encode(fullPin());
  access[5] = std::byte{3};
  EXPECT_FALSE(base::decode<PinMessage>(access));
  Hello epoch = fullHello();
  epoch.last_epoch = kMaxEpoch;
  EXPECT_FALSE(base::decode<Hello>(base::encode(epoch)))
      << "the next one would begin at 0 some day";
  Bytes code = base::encode(RefuseMessage{});
  code[0] = std::byte{200};
  EXPECT_FALSE(base::decode<RefuseMessage>(code));
}

// An unprintable name would forge lines of a log, or control the terminal that shows it.
TEST(Messages, NamesThatCannotBePrintedAreRefused) {
  for (const std::string bad : {"", "a\nviaduct[1] error: forged", "\x1b[2J", "\xff"}) {
    Hello name = fullHello();
    name.name = bad;
    EXPECT_FALSE(base::decode<Hello>(base::encode(name))) << base::printable(bad);
    if (bad.empty()) continue;
    Hello address = fullHello();
    address.addresses[0] = bad;
    EXPECT_FALSE(base::decode<Hello>(base::encode(address))) << base::printable(bad);
    Hello socket = fullHello();
    socket.unix_name = bad;
    EXPECT_FALSE(base::decode<Hello>(base::encode(socket))) << base::printable(bad);
    Card card{.name = bad};
    EXPECT_FALSE(Card::decode(card.encode())) << base::printable(bad);
  }
  Hello umlaut = fullHello();
  umlaut.name = "gr\xc3\xb6\xc3\x9fte";
  EXPECT_TRUE(base::decode<Hello>(base::encode(umlaut)));
}

TEST(Messages, TextsOfAPeerAreMadePrintable) {
  const ByeMessage bye{.why = "over\n\x1b[2J"};
  EXPECT_EQ(base::decode<ByeMessage>(base::encode(bye))->why, "over\\x0a\\x1b[2J");
}

TEST(Messages, LongTextsAreCutWhenSent) {
  const ByeMessage bye{.why = std::string(5000, 'w')};
  EXPECT_EQ(base::decode<ByeMessage>(base::encode(bye))->why.size(), kMaxByeBytes);
  const RefuseMessage refusal{{.detail = std::string(50000, 'd')}};
  EXPECT_EQ(base::decode<RefuseMessage>(base::encode(refusal))->why.detail.size(), kMaxReasonBytes);
}

Card fullCard() {
  return {.name = "prefill-0",
          .agent = {1},
          .boot = "b00t",
          .unix_name = "viaduct-1",
          .addresses = {"10.0.0.1:1"},
          .secret = {9, 8, 7},
          .pins = {fullPin().info, {.label = "", .slot = 1}}};
}

std::string refusal(std::span<const std::byte> blob) {
  const auto card = Card::decode(blob);
  return card ? "taken" : card.error().text();
}

TEST(CardTest, ComesOutAsItWentIn) {
  const auto card = Card::decode(fullCard().encode());
  ASSERT_TRUE(card) << card.error().text();
  EXPECT_EQ(card->name, "prefill-0");
  EXPECT_EQ(card->agent, fullCard().agent);
  EXPECT_EQ(card->boot, "b00t");
  EXPECT_EQ(card->unix_name, "viaduct-1");
  EXPECT_EQ(card->addresses, fullCard().addresses);
  EXPECT_EQ(card->secret, fullCard().secret);
  EXPECT_EQ(card->pins, fullCard().pins);
}

TEST(CardTest, TruncatedCorruptedAndOtherVersionsAreRefusedAsSuch) {
  const auto good = fullCard().encode();
  for (std::size_t size = 0; size < good.size(); ++size)
    EXPECT_NE(refusal(std::span(good).first(size)).find("cut short"), std::string::npos) << size;
  for (std::size_t at = 16; at < good.size(); ++at) {
    auto bad = good;
    bad[at] ^= std::byte{1};
    EXPECT_NE(refusal(bad).find("corrupted"), std::string::npos) << at;
  }
  auto other = good;
  other[8] = std::byte{2};
  EXPECT_NE(refusal(other).find("version 2; this agent reads version 1"), std::string::npos);
  EXPECT_EQ(Card::decode(other).error().code, Code::kUnsupported);
  other = good;
  other[0] = std::byte{'x'};
  EXPECT_NE(refusal(other).find("not a Card"), std::string::npos);
  other = good;
  other.push_back(std::byte{0});
  EXPECT_NE(refusal(other).find("longer"), std::string::npos);
}

// The checksum is right, but the content is malformed, as in a forged Card.
TEST(CardTest, ACountBeyondItsBytesAllocatesNothing) {
  auto forged = Card{}.encode();
  base::storeLittle(&forged[forged.size() - 12], std::uint32_t{0x00ffffff});
  base::storeLittle(&forged[forged.size() - 8],
                    base::Checksum().add(std::span(forged).first(forged.size() - 8)).value());
  EXPECT_NE(refusal(forged).find("the Card's content"), std::string::npos) << refusal(forged);
}

}  // namespace
}  // namespace viaduct::agent
