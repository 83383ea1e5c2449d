#include "base/fields.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace viaduct::base {

struct Sample {
  static constexpr std::string_view kName = "sample";
  std::string name = {};
  std::vector<std::string> list = {};
  std::uint64_t from = 0, bytes = 0;
  std::string reason = {};
};
auto fields(Is<Sample> auto& s) {
  return list(atMost(4, s.name), atMost(2, s.list, 3), s.from, atMost(9, s.bytes),
              noOverflow(s.from, s.bytes), cutTo(5, s.reason));
}

namespace {

std::string faultOf(const Sample& sample) {
  const auto back = decode<Sample>(encode(sample));
  return back ? "none" : back.error().detail;
}

TEST(Fields, DecodeToTheEncodedValues) {
  const auto back = decode<Sample>(encode(Sample{"abcd", {"a", "bcd"}, 7, 9, "12345"}));
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(back->name, "abcd");
  EXPECT_EQ(back->list, (std::vector<std::string>{"a", "bcd"}));
  EXPECT_EQ(back->from, 7U);
  EXPECT_EQ(back->bytes, 9U);
  EXPECT_EQ(back->reason, "12345");
}

TEST(Fields, AValueBeyondItsLimitIsRefused) {
  EXPECT_EQ(faultOf({.name = "abcde"}), "sample: 5 exceeds the limit of 4");
  EXPECT_EQ(faultOf({.list = {"a", "b", "c"}}), "sample: 3 exceeds the limit of 2");
  EXPECT_EQ(faultOf({.list = {"abcd"}}), "sample: 4 exceeds the limit of 3") << "of an element";
  EXPECT_EQ(faultOf({.bytes = 10}), "sample: 10 exceeds the limit of 9");
  EXPECT_EQ(faultOf({.from = ~std::uint64_t{0}, .bytes = 1}), "sample: beyond what is allowed")
      << "two fields together";
}

TEST(Fields, AReasonIsCutWhenItIsSent) {
  EXPECT_EQ(decode<Sample>(encode(Sample{.reason = "123456"}))->reason, "12345");
}

TEST(Fields, OtherLengthsAreRefusedAsSuch) {
  Bytes bytes = encode(Sample{.name = "abcd"});
  bytes.push_back({});
  EXPECT_EQ(decode<Sample>(bytes).error().detail, "sample: bytes left over");
  bytes.resize(bytes.size() - 2);
  EXPECT_EQ(decode<Sample>(bytes).error().detail, "sample: cut short");
}

TEST(Fields, AFalseCountReadsNoMoreElementsThanThereAreBytes) {
  std::vector<std::uint64_t> numbers;
  EXPECT_FALSE(unpack(packed(~std::uint32_t{0}, std::uint64_t{1}), numbers));
  EXPECT_LE(numbers.size(), 2U);
}

}  // namespace
}  // namespace viaduct::base
