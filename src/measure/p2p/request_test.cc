#include "measure/p2p/request.h"

#include <gtest/gtest.h>

namespace viaduct::measure::p2p {
namespace {

TEST(Requests, TravelAsBytes) {
  const Request request{
      .verb = Request::Verb::kPrepare, .number = 7, .bytes = 4096, .label = "p2p-1", .seed = 3};
  const auto bytes = encode(request);
  EXPECT_EQ(*decodeRequest(bytes), request);
  for (std::size_t cut = 0; cut < bytes.size(); ++cut)
    EXPECT_FALSE(decodeRequest(std::span(bytes).first(cut))) << cut;
  auto newer = bytes;
  newer[4] = std::byte{9};
  EXPECT_FALSE(decodeRequest(newer));
}

TEST(Answers, CarryAValueOrAnError) {
  const auto value = decodeAnswer(encode(Answer{.number = 3, .value = std::string("yes")}));
  ASSERT_TRUE(value);
  EXPECT_EQ(value->number, 3U);
  EXPECT_EQ(*value->value, "yes");
  const Error why{.code = Code::kBusy, .detail = "the target is busy", .remedy = "wait"};
  const auto bytes = encode(Answer{.number = 4, .value = why});
  const auto error = decodeAnswer(bytes);
  ASSERT_TRUE(error);
  ASSERT_FALSE(error->value);
  EXPECT_EQ(error->value.error().text(), why.text());
  for (std::size_t cut = 0; cut < bytes.size(); ++cut)
    EXPECT_FALSE(decodeAnswer(std::span(bytes).first(cut))) << cut;
}

}  // namespace
}  // namespace viaduct::measure::p2p
