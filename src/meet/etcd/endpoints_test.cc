#include "meet/etcd/endpoints.h"

#include <gtest/gtest.h>

namespace viaduct::meet::etcd {
namespace {

std::string urls(std::string_view text) {
  const auto parsed = parseEndpoints(text);
  if (!parsed) return parsed.error().detail;
  std::string out;
  for (const EtcdEndpoint& one : *parsed) out += (out.empty() ? "" : " ") + one.url();
  return out;
}

TEST(EtcdEndpoints, EverySpellingThatPeopleUse) {
  EXPECT_EQ(urls("http://etcd.default:2379"), "http://etcd.default:2379");
  EXPECT_EQ(urls("https://etcd"), "https://etcd:2379");
  EXPECT_EQ(urls("etcd:2379"), "http://etcd:2379");
  EXPECT_EQ(urls("etcd"), "http://etcd:2379");
  EXPECT_EQ(urls("http://etcd:2379/"), "http://etcd:2379");
  EXPECT_EQ(urls("http://[fd00::1]:2379"), "http://[fd00::1]:2379");
  EXPECT_EQ(urls("[::1]"), "http://[::1]:2379");
  EXPECT_EQ(urls("10.0.0.1:1,https://b:2/, c:3"), "http://10.0.0.1:1 https://b:2 http://c:3");
}

TEST(EtcdEndpoints, MalformedTextIsRefusedWithTheWrongCharacter) {
  EXPECT_EQ(urls("http://etcd:23x9"),
            "\"http://etcd:23x9\": 'x' at position 15: this is not a digit of a port");
  EXPECT_EQ(urls("http://et cd:1"),
            "\"http://et cd:1\": byte 0x20 at position 10: this does not belong in a host's name");
  EXPECT_EQ(urls("a:1,,b:2"), "\"a:1,,b:2\": ',' at position 5: an endpoint is missing here");
  EXPECT_EQ(urls("a:1,"), "\"a:1,\": its end at position 5: an endpoint is missing here");
  EXPECT_EQ(urls(""), "\"\": its end at position 1: an endpoint is missing here");
  EXPECT_EQ(urls("ftp://a"), "\"ftp://a\": 'f' at position 1: only http:// and https:// are known");
  EXPECT_EQ(urls("http://"), "\"http://\": its end at position 8: a host is missing here");
  EXPECT_EQ(urls("a:"), "\"a:\": its end at position 3: the port after ':' is missing");
  EXPECT_EQ(urls("a:0"), "\"a:0\": '0' at position 3: a port is a number from 1 to 65535");
  EXPECT_EQ(urls("a:70000"), "\"a:70000\": '7' at position 3: a port is a number from 1 to 65535");
  EXPECT_EQ(
      urls("fd00::1:2379"),
      "\"fd00::1:2379\": ':' at position 6: write an IPv6 address in brackets: [fd00::1]:2379");
  EXPECT_EQ(urls("[fd00::g]:1"),
            "\"[fd00::g]:1\": 'g' at position 8: this does not belong in an IPv6 address");
  EXPECT_EQ(urls("[fd00::1"), "\"[fd00::1\": '[' at position 1: this '[' has no ']'");
  EXPECT_EQ(urls("http://a:1/v3"),
            "\"http://a:1/v3\": 'v' at position 12: only a slash may follow host and port");
  EXPECT_EQ(urls("http://user:secret@a:1"),
            "'@' at position 19: user and password do not belong in an endpoint");
}

}  // namespace
}  // namespace viaduct::meet::etcd
