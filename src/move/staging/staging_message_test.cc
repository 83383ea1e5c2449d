// Tests the messages of staging links.
#include "move/staging/staging_message.h"

#include <gtest/gtest.h>

#include <string>

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

TEST(StagingMessage, RefusesListsAboveTheirLimits) {
  StorageRequest request;
  request.pieces.resize(kMostPieces);
  EXPECT_TRUE(decodeStaging(encode(request)));
  request.pieces.emplace_back();
  const auto pieces = decodeStaging(encode(request));
  ASSERT_FALSE(pieces);
  EXPECT_EQ(pieces.error().code, Code::kProtocol);
  EXPECT_EQ(pieces.error().detail, "storage request: 1025 exceeds the limit of 1024");
  StorageAnswer answer;
  answer.shares.resize(kMostShares);
  EXPECT_TRUE(decodeStaging(encode(answer)));
  answer.shares.emplace_back();
  EXPECT_EQ(decodeStaging(encode(answer)).error().detail,
            "storage answer: 129 exceeds the limit of 128");
}

TEST(StagingMessage, CutsLongTexts) {
  const auto back =
      sent(StorageAnswer{.error = Error{.code = Code::kDevice, .detail = std::string(1 << 20, 'd')},
                         .shares = {{.backend = "file", .rail = std::string(1 << 20, 'r')}}});
  EXPECT_EQ(back.error->detail.size(), kMaxErrorText);
  EXPECT_EQ(back.shares[0].rail.size(), kMaxShareText);
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
