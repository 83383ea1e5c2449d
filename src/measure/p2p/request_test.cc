#include "measure/p2p/request.h"

#include <gtest/gtest.h>

namespace viaduct::measure::p2p {
namespace {

TEST(Requests, TravelAsBytes) {
  P2pRequest request{.verb = P2pRequest::Verb::kRun, .number = 7};
  request.spec.rows = {{.backend = "tcp", .op = OpKind::kRead, .block_bytes = 5, .batch = 2}};
  request.spec.bidirectional = true;
  request.spec.require = "not-tcp";
  request.spec.verify = Verified::kFull;
  const auto bytes = encode(request);
  EXPECT_EQ(*decodeRequest(bytes), request);
  for (std::size_t cut = 0; cut < bytes.size(); ++cut)
    EXPECT_FALSE(decodeRequest(std::span(bytes).first(cut))) << cut;
  auto newer = bytes;
  newer[4] = std::byte{9};
  EXPECT_FALSE(decodeRequest(newer));
  EXPECT_TRUE(isRequest(newer));
  EXPECT_FALSE(isRequest(std::span(bytes).first(3)));
  request.spec.rows[0].block_bytes = 0;
  EXPECT_FALSE(decodeRequest(encode(request))) << "nothing can be measured by that";
}

TEST(Answers, CarryAValueOrAnError) {
  const auto value = decodeAnswer(encode(P2pAnswer{.number = 3, .value = std::string("yes")}));
  ASSERT_TRUE(value);
  EXPECT_EQ(value->number, 3U);
  EXPECT_EQ(*value->value, "yes");
  const Error why{.code = Code::kBusy, .detail = "the target is busy", .remedy = "wait"};
  const auto bytes = encode(P2pAnswer{.number = 4, .value = why});
  const auto error = decodeAnswer(bytes);
  ASSERT_TRUE(error);
  ASSERT_FALSE(error->value);
  EXPECT_EQ(error->value.error().text(), why.text());
  for (std::size_t cut = 0; cut < bytes.size(); ++cut)
    EXPECT_FALSE(decodeAnswer(std::span(bytes).first(cut))) << cut;
}

}  // namespace
}  // namespace viaduct::measure::p2p
