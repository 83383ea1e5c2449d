#include "meet/groups/server_record.h"

#include <gtest/gtest.h>

namespace viaduct::meet::groups {
namespace {

TEST(ServerRecord, DecodesToTheEncodedValues) {
  const ServerRecord record{
      .secret = {1, 2}, .name = "a:1", .addresses = {"10.0.0.1:5", "[::1]:5"}};
  const auto back = decodeRecord<ServerRecord>(encodeRecord(record));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->secret, record.secret);
  EXPECT_EQ(back->name, record.name);
  EXPECT_EQ(back->addresses, record.addresses);
}

TEST(ServerRecord, MalformedBytesDecodeToNothing) {
  const std::string server = encodeRecord(ServerRecord{.name = "a", .addresses = {"b:1"}});
  for (std::size_t i = 0; i < server.size(); ++i)
    EXPECT_FALSE(decodeRecord<ServerRecord>(server.substr(0, i))) << i;
  EXPECT_FALSE(decodeRecord<ServerRecord>(server + "x"));
  EXPECT_FALSE(decodeRecord<Entry>(server)) << "one is not the other";
  ServerRecord many;
  many.addresses.resize(kMaxAddresses + 1, "b:1");
  EXPECT_FALSE(decodeRecord<ServerRecord>(encodeRecord(many)));
}

}  // namespace
}  // namespace viaduct::meet::groups
