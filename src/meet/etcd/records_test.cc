#include "meet/etcd/records.h"

#include <gtest/gtest.h>

namespace viaduct::meet::etcd {
namespace {

TEST(EtcdRecords, DecodeToTheEncodedValues) {
  const ServerRecord record{
      .secret = {1, 2}, .name = "a:1", .addresses = {"10.0.0.1:5", "[::1]:5"}};
  const auto entry = decodeEntry(encode(Entry{"boot|1 2", encode(record)}));
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->identity, "boot|1 2");
  const auto back = decodeServer(entry->value);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->secret, record.secret);
  EXPECT_EQ(back->name, record.name);
  EXPECT_EQ(back->addresses, record.addresses);
}

TEST(EtcdRecords, TruncatedOrTooLongBytesDecodeToNothing) {
  const std::string entry = encode(Entry{"i", "v"});
  const std::string server = encode(ServerRecord{.name = "a", .addresses = {"b:1"}});
  for (std::size_t i = 0; i < entry.size(); ++i) EXPECT_FALSE(decodeEntry(entry.substr(0, i))) << i;
  for (std::size_t i = 0; i < server.size(); ++i)
    EXPECT_FALSE(decodeServer(server.substr(0, i))) << i;
  EXPECT_FALSE(decodeEntry(entry + "x"));
  EXPECT_FALSE(decodeServer(server + "x"));
  EXPECT_FALSE(decodeEntry(server)) << "one is not the other";
  ServerRecord many;
  many.addresses.resize(kMaxAddresses + 1, "b:1");
  EXPECT_FALSE(decodeServer(encode(many)));
}

TEST(EtcdRecords, ANameIsOnePartOfAKey) { EXPECT_EQ(escaped("a/b c-1_.%"), "a%2fb%20c-1_.%25"); }

}  // namespace
}  // namespace viaduct::meet::etcd
