#include "backends/ucx/message.h"

#include <gtest/gtest.h>

#include <vector>

namespace viaduct::ucx {
namespace {

using Kind = Message::Kind;

Message message(Kind kind, const std::vector<Extent>& extents, bool flush = false) {
  Message out;
  out.kind = kind;
  out.flush = flush;
  out.token = 0x1122334455667788U;
  out.number = 0x0123456789abcdefU;
  out.key = 0xfedcba9876543210U;
  for (const Extent& one : extents) out.extents[out.count++] = one;
  return out;
}
std::vector<std::byte> bytesOf(const Message& message) {
  std::array<std::byte, Message::kLongestHead> out{};
  const std::size_t bytes = encode(message, out);
  return {out.begin(), out.begin() + static_cast<std::ptrdiff_t>(bytes)};
}

TEST(Message, IsDecodedAsItWasEncoded) {
  std::vector<Extent> most;
  for (std::size_t i = 0; i < Message::kMostExtents; ++i) most.push_back({i << 40U, i});
  struct Case {
    Message sent;
    std::size_t behind;
  };
  for (const auto& [sent, behind] :
       {Case{message(Kind::kWrite, {{0x7000, 5}, {1, 0}}, true), 5},
        Case{message(Kind::kWrite, most), 64 * 63 / 2},
        Case{message(Kind::kRead, {{~0ULL, Message::kMostBytes}}), 0},
        Case{message(Kind::kData, {}, true), 1234}, Case{message(Kind::kFlush, {}, true), 0},
        Case{message(Kind::kFlushed, {}, true), 0}}) {
    const auto read = decode(bytesOf(sent), behind);
    ASSERT_TRUE(read) << static_cast<int>(sent.kind);
    EXPECT_EQ(read->kind, sent.kind);
    EXPECT_EQ(read->flush, sent.flush);
    EXPECT_EQ(read->token, sent.token);
    EXPECT_EQ(tokenOf(bytesOf(sent)), sent.token);
    EXPECT_EQ(read->number, sent.number);
    EXPECT_EQ(read->key, sent.key);
    ASSERT_EQ(read->count, sent.count);
    for (std::uint32_t i = 0; i < sent.count; ++i) EXPECT_EQ(read->extents[i], sent.extents[i]);
  }
}

// The data of all extents of a write must follow the head, and the answer to a read must fit into
// one message.
TEST(Message, WithLengthsThatDoNotAgreeIsRefused) {
  const auto refused = [](const Message& sent, std::size_t behind) {
    return !decode(bytesOf(sent), behind).has_value();
  };
  EXPECT_TRUE(refused(message(Kind::kWrite, {{0x7000, 5}}), 4));
  EXPECT_TRUE(refused(message(Kind::kWrite, {{0x7000, 5}}), 6));
  EXPECT_TRUE(refused(message(Kind::kWrite, {{1, ~0ULL}, {2, 6}}), 5)) << "their sum is 5";
  EXPECT_TRUE(refused(message(Kind::kWrite, {}), 0));
  EXPECT_TRUE(refused(message(Kind::kRead, {{1, Message::kMostBytes}, {2, 1}}), 0));
  EXPECT_TRUE(refused(message(Kind::kRead, {{1, 2}}), 2));
  EXPECT_TRUE(refused(message(Kind::kRead, {}), 0));
  EXPECT_TRUE(refused(message(Kind::kData, {{1, 2}}), 2));
  EXPECT_TRUE(refused(message(Kind::kFlush, {}, true), 1));
  EXPECT_TRUE(refused(message(Kind::kFlush, {}, false), 0));
  EXPECT_TRUE(refused(message(static_cast<Kind>(0), {}), 0));
  EXPECT_TRUE(refused(message(static_cast<Kind>(6), {}), 0));
}

TEST(Message, ThatIsTruncatedTooLongOrForeignIsRefused) {
  const auto whole = bytesOf(message(Kind::kWrite, {{0x7000, 5}, {0x8000, 6}}));
  ASSERT_TRUE(decode(whole, 11));
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    EXPECT_FALSE(decode(std::span(whole).first(bytes), 11)) << bytes;
    EXPECT_EQ(tokenOf(std::span(whole).first(bytes)).has_value(), bytes >= 16) << bytes;
  }
  auto longer = whole;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(decode(longer, 11));
  auto foreign = whole;
  foreign[0] ^= std::byte{1};
  EXPECT_FALSE(decode(foreign, 11));
  auto too_many = bytesOf(message(Kind::kRead, {{1, 1}}));
  too_many[6] = std::byte{Message::kMostExtents + 1};
  too_many.resize(32 + 16 * (Message::kMostExtents + 1));
  EXPECT_FALSE(decode(too_many, 0));
}

}  // namespace
}  // namespace viaduct::ucx
