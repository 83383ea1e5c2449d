#include "backends/ucx/letter.h"

#include <gtest/gtest.h>

#include <vector>

namespace viaduct::ucx {
namespace {

using Kind = Letter::Kind;

Letter letter(Kind kind, const std::vector<Letter::Extent>& extents, bool flush = false) {
  Letter out;
  out.kind = kind;
  out.flush = flush;
  out.token = 0x1122334455667788U;
  out.number = 0x0123456789abcdefU;
  out.key = 0xfedcba9876543210U;
  for (const Letter::Extent& one : extents) out.extents[out.count++] = one;
  return out;
}
std::vector<std::byte> bytesOf(const Letter& letter) {
  std::array<std::byte, Letter::kLongestHead> out{};
  const std::size_t bytes = encode(letter, out);
  return {out.begin(), out.begin() + static_cast<std::ptrdiff_t>(bytes)};
}

TEST(Letter, IsReadAsItWasWritten) {
  std::vector<Letter::Extent> most;
  for (std::size_t i = 0; i < Letter::kMostExtents; ++i) most.push_back({i << 40U, i});
  struct Case {
    Letter sent;
    std::size_t behind;
  };
  for (const auto& [sent, behind] :
       {Case{letter(Kind::kWrite, {{0x7000, 5}, {1, 0}}, true), 5},
        Case{letter(Kind::kWrite, most), 64 * 63 / 2},
        Case{letter(Kind::kRead, {{~0ULL, Letter::kMostBytes}}), 0},
        Case{letter(Kind::kData, {}, true), 1234}, Case{letter(Kind::kFlush, {}, true), 0},
        Case{letter(Kind::kFlushed, {}, true), 0}}) {
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

// Whoever writes the data of an extent must find it behind the head, and an answer must fit into
// one letter.
TEST(Letter, ThatSaysMoreThanItBringsIsRefused) {
  const auto refused = [](const Letter& sent, std::size_t behind) {
    return !decode(bytesOf(sent), behind).has_value();
  };
  EXPECT_TRUE(refused(letter(Kind::kWrite, {{0x7000, 5}}), 4));
  EXPECT_TRUE(refused(letter(Kind::kWrite, {{0x7000, 5}}), 6));
  EXPECT_TRUE(refused(letter(Kind::kWrite, {{1, ~0ULL}, {2, 6}}), 5)) << "their sum is 5";
  EXPECT_TRUE(refused(letter(Kind::kWrite, {}), 0));
  EXPECT_TRUE(refused(letter(Kind::kRead, {{1, Letter::kMostBytes}, {2, 1}}), 0));
  EXPECT_TRUE(refused(letter(Kind::kRead, {{1, 2}}), 2));
  EXPECT_TRUE(refused(letter(Kind::kRead, {}), 0));
  EXPECT_TRUE(refused(letter(Kind::kData, {{1, 2}}), 2));
  EXPECT_TRUE(refused(letter(Kind::kFlush, {}, true), 1));
  EXPECT_TRUE(refused(letter(Kind::kFlush, {}, false), 0));
  EXPECT_TRUE(refused(letter(static_cast<Kind>(0), {}), 0));
  EXPECT_TRUE(refused(letter(static_cast<Kind>(6), {}), 0));
}

TEST(Letter, ThatIsCutShortOrLongerOrForeignIsRefused) {
  const auto whole = bytesOf(letter(Kind::kWrite, {{0x7000, 5}, {0x8000, 6}}));
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
  auto too_many = bytesOf(letter(Kind::kRead, {{1, 1}}));
  too_many[6] = std::byte{Letter::kMostExtents + 1};
  too_many.resize(32 + 16 * (Letter::kMostExtents + 1));
  EXPECT_FALSE(decode(too_many, 0));
}

}  // namespace
}  // namespace viaduct::ucx
