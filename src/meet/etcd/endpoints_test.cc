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
            "\"http://etcd:23x9\": 'x' at position 15 is not a digit of a port");
  EXPECT_EQ(urls("http://et cd:1"),
            "\"http://et cd:1\": ' ' at position 10 does not belong in a host name");
  EXPECT_EQ(urls("a:1,,b:2"), "\"a:1,,b:2\": an endpoint is missing at position 5");
  EXPECT_EQ(urls("a:1,"), "\"a:1,\": an endpoint is missing at position 5");
  EXPECT_EQ(urls(""), "\"\": an endpoint is missing at position 1");
  EXPECT_EQ(urls("ftp://a"), "\"ftp://a\": only http:// and https:// are known at position 1");
  EXPECT_EQ(urls("http://"), "\"http://\": it is empty");
  EXPECT_EQ(urls("a:"), "\"a:\": the port after the last ':' is missing");
  EXPECT_EQ(urls("a:0"), "\"a:0\": port 0 and the host * are not an etcd's");
  EXPECT_EQ(urls("a:70000"), "\"a:70000\": the port is above 65535");
  EXPECT_EQ(urls("fd00::1:2379"),
            "\"fd00::1:2379\": ':' at position 5 is one too many: write an IPv6 address in "
            "brackets");
  EXPECT_EQ(urls("b, [fd00::g]:1"),
            "\"b, [fd00::g]:1\": 'g' at position 11 does not belong in an IPv6 address");
  EXPECT_EQ(urls("[fd00::1"), "\"[fd00::1\": ']' is missing");
  EXPECT_EQ(urls("[fd00::1],b"), "http://[fd00::1]:2379 http://b:2379");
  EXPECT_EQ(urls("http://a:1/v3"),
            "\"http://a:1/v3\": '/' at position 11 is not a digit of a port");
  EXPECT_EQ(urls("http://user:secret@a:1"),
            "'@' at position 19: user and password do not belong in an endpoint");
}

}  // namespace
}  // namespace viaduct::meet::etcd
