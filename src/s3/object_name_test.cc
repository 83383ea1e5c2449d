#include "s3/object_name.h"

#include <gtest/gtest.h>

namespace viaduct::s3 {
namespace {

TEST(ObjectNameTest, HasABucketAndAKey) {
  const auto name = parseObjectName("s3://kv.cache/model/rank 0/../b+1");
  ASSERT_TRUE(name) << name.error().text();
  EXPECT_EQ(*name, (ObjectName{"kv.cache", "model/rank 0/../b+1"}));
  EXPECT_EQ(name->text(), "s3://kv.cache/model/rank 0/../b+1");
}

TEST(ObjectNameTest, SaysWhichPartIsWrong) {
  const std::pair<std::string, const char*> wrong[] = {
      {"http://b/k", "s3://"},
      {"s3://bucket", "no key"},
      {"s3://bucket/", "no key"},
      {"s3:///key", "no bucket"},
      {"s3://b@d/key", "the bucket has"},
      {"s3://b/" + std::string(1025, 'k'), "1,024"},
  };
  for (const auto& [text, says] : wrong) {
    const auto name = parseObjectName(text);
    ASSERT_FALSE(name) << text;
    EXPECT_NE(name.error().detail.find(says), std::string::npos) << name.error().text();
  }
}

TEST(EncodeQuery, SortsByEncodedName) {
  EXPECT_EQ(encodeQuery({{"b", "1"}, {"a~", "2"}, {"a+", "/"}}), "a%2B=%2F&a~=2&b=1");
}

TEST(EndpointTest, LeavesOutThePortOfTheScheme) {
  EXPECT_EQ(*parseEndpoint("https://s3.example:443/"), (Endpoint{.host = "s3.example"}));
  EXPECT_EQ(*parseEndpoint("http://[::1]:9000/s3/"),
            (Endpoint{.tls = false, .host = "[::1]", .port = "9000", .prefix = "/s3"}));
  EXPECT_EQ(parseEndpoint("http://[::1]")->host, "[::1]");
}

TEST(EndpointTest, SaysWhichPartIsWrong) {
  for (const char* url : {"s3.example", "ftp://a", "http://", "http://a:0", "http://a:x",
                          "http://user:word@a", "http://a/b?c", "http://a b"})
    EXPECT_FALSE(parseEndpoint(url)) << url;
}

TEST(EndpointTest, ShowsNoPassword) {
  const auto endpoint = parseEndpoint("http://user:word@a");
  EXPECT_EQ(endpoint.error().text().find("word"), std::string::npos) << endpoint.error().text();
}

TEST(PlaceTest, OfAListNamesTheBucketOrNothing) {
  Endpoint endpoint = *parseEndpoint("http://store:9000/s3");
  EXPECT_EQ(placeOfList("kv", endpoint).url(endpoint, {}), "http://store:9000/s3/kv/");
  EXPECT_EQ(placeOfList("", endpoint).url(endpoint, {}), "http://store:9000/s3/");
  endpoint.style = AddressStyle::kVirtual;
  EXPECT_EQ(placeOfList("kv", endpoint).url(endpoint, {}), "http://kv.store:9000/s3/");
  EXPECT_EQ(placeOfList("", endpoint).url(endpoint, {}), "http://store:9000/s3/");
}

TEST(PlaceTest, NamesTheBucketInThePathOrTheHost) {
  Endpoint endpoint = *parseEndpoint("http://store:9000/s3");
  const ObjectName name{"kv", "a b"};
  EXPECT_EQ(placeOf(name, endpoint).url(endpoint, {}), "http://store:9000/s3/kv/a%20b");
  endpoint.style = AddressStyle::kVirtual;
  EXPECT_EQ(placeOf(name, endpoint).url(endpoint, {{"uploads", ""}}),
            "http://kv.store:9000/s3/a%20b?uploads=");
}

}  // namespace
}  // namespace viaduct::s3
