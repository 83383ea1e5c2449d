// Members of different versions must refuse each other before the first row.
#include "measure/run/hello.h"

#include <gtest/gtest.h>

namespace viaduct::measure {
namespace {

MemberHello sample() {
  return {.options = {{"op", "write"}, {"threads", "2"}},
          .host = {.boot_id = "b", .hostname = "node", .kernel = "6.8", .cores = 2},
          .build = {"0.1.0", "fc15155"}};
}

TEST(MemberHello, ArrivesAsItWasSent) {
  const auto read = decodeHello(encode(sample()));
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read->host, sample().host);
  EXPECT_EQ(read->build, sample().build);
  EXPECT_TRUE(sameOptions({sample(), *read}));
}

TEST(MemberHello, AnotherVersionIsNamedInTheRefusal) {
  const std::string own = encode(sample());
  std::string newer = own, longer = own + "x";
  ++newer[newer.size() - 4];
  for (const std::string& other : {newer, longer, own.substr(0, own.size() - 4), std::string()}) {
    const auto read = decodeHello(other);
    ASSERT_FALSE(read);
    EXPECT_NE(read.error().text().find("another version"), std::string::npos)
        << read.error().text();
  }
}

TEST(MemberHello, OptionsThatDifferAreNamed) {
  MemberHello other = sample();
  other.options[1].value = "4";
  const Status same = sameOptions({sample(), other});
  ASSERT_FALSE(same);
  EXPECT_NE(same.error().text().find("threads=4"), std::string::npos) << same.error().text();
}

}  // namespace
}  // namespace viaduct::measure
