// Tests the messages of staging links.
#include "move/staging/staging_message.h"

#include <gtest/gtest.h>

namespace viaduct::move {
namespace {

template <class Message>
Message sent(const Message& message) {
  const auto back = decodeStaging(encode(message));
  EXPECT_TRUE(back) << back.error().text();
  EXPECT_TRUE(std::holds_alternative<Message>(*back));
  return std::get<Message>(*back);
}

TEST(StagingMessage, ARequestKeepsItsPieces) {
  const auto back = sent(StorageRequest{
      .chunk = 3,
      .store = true,
      .pieces = {{.pin = 1, .place = 4096, .address = std::uint64_t{1} << 62U, .bytes = 77}}});
  EXPECT_EQ(back.chunk, 3U);
  EXPECT_TRUE(back.store);
  ASSERT_EQ(back.pieces.size(), 1U);
  EXPECT_EQ(back.pieces[0].address, std::uint64_t{1} << 62U);
  EXPECT_EQ(back.pieces[0].bytes, 77U);
}

TEST(StagingMessage, AnAnswerKeepsErrorAndShares) {
  const auto back =
      sent(StorageAnswer{.chunk = 1,
                         .error = Error{.code = Code::kExhausted, .detail = "full"},
                         .shares = {{.backend = "file", .way = "uring", .bytes = 9}}});
  ASSERT_TRUE(back.error);
  EXPECT_EQ(back.error->code, Code::kExhausted);
  EXPECT_EQ(back.error->detail, "full");
  ASSERT_EQ(back.shares.size(), 1U);
  EXPECT_EQ(back.shares[0].way, "uring");
  EXPECT_EQ(back.shares[0].bytes, 9U);
}

TEST(StagingMessage, RefusesEveryTruncation) {
  const base::Bytes whole = encode(StorageRequest{.chunk = 1, .pieces = {{}, {}}});
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes)
    EXPECT_FALSE(decodeStaging(std::span(whole).first(bytes))) << bytes;
}

TEST(StagingMessage, RefusesMoreBytesAnotherVersionAndAnotherKind) {
  base::Bytes bytes = encode(StorageCancel{1});
  EXPECT_TRUE(decodeStaging(bytes));
  bytes.push_back(std::byte{0});
  EXPECT_FALSE(decodeStaging(bytes));
  bytes.pop_back();
  bytes[0] = std::byte{9};
  EXPECT_FALSE(decodeStaging(bytes));
  bytes[0] = std::byte{1};
  bytes[1] = std::byte{200};
  EXPECT_FALSE(decodeStaging(bytes));
}

}  // namespace
}  // namespace viaduct::move
