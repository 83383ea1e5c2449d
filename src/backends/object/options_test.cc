#include "backends/object/options.h"

#include <gtest/gtest.h>

#include "backends/object/facts.h"

namespace viaduct::object {
namespace {

Settings with(std::map<std::string, std::string, std::less<>> values) {
  values.try_emplace("AWS_ACCESS_KEY_ID", "AKID");
  values.try_emplace("AWS_SECRET_ACCESS_KEY", "hidden word");
  Settings out;
  for (const SettingRow& row : kSettings) {
    const auto at = values.find(row.variable);
    if (at == values.end()) continue;
    const auto parsed = row.parse(at->second, out);
    EXPECT_TRUE(parsed) << row.variable;
  }
  return out;
}

TEST(ObjectOptions, AreThoseOfAmazonByDefault) {
  const auto options = resolveOptions(with({}));
  ASSERT_TRUE(options) << options.error().text();
  EXPECT_EQ(options->access.endpoint, s3::amazonEndpoint("us-east-1"));
  EXPECT_EQ(options->access.endpoint.style, s3::AddressStyle::kVirtual);
  EXPECT_EQ(options->part, std::uint64_t{8} << 20U);
  EXPECT_FALSE(options->sign_bodies);
}

TEST(ObjectOptions, AnEndpointHasTheBucketInThePath) {
  const auto options = resolveOptions(with({{"AWS_ENDPOINT_URL", "http://store:9000"},
                                            {"AWS_REGION", "eu-west-1"},
                                            {"VIADUCT_OBJECT_PART", "16MiB"},
                                            {"VIADUCT_OBJECT_CONNECTIONS", "4"}}));
  ASSERT_TRUE(options) << options.error().text();
  EXPECT_EQ(options->access.endpoint.host, "store");
  EXPECT_EQ(options->access.endpoint.style, s3::AddressStyle::kPath);
  EXPECT_EQ(options->access.region, "eu-west-1");
  EXPECT_EQ(options->part, std::uint64_t{16} << 20U);
  EXPECT_EQ(options->connections, 4U);
  EXPECT_TRUE(options->sign_bodies) << "http protects no bytes";
}

TEST(ObjectOptions, NoRowShowsASecret) {
  const Settings settings = with({{"AWS_SESSION_TOKEN", "hidden word"}});
  for (const SettingRow& row : kSettings)
    if (row.show != nullptr) {
      EXPECT_EQ(row.show(settings).find("hidden word"), std::string::npos) << row.variable;
    }
}

}  // namespace
}  // namespace viaduct::object
