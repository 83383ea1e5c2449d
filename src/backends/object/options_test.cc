#include "backends/object/options.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include "backends/object/facts.h"
#include "support/temporary_folder.h"

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
  EXPECT_EQ(options->endpoint, amazonEndpoint("us-east-1"));
  EXPECT_EQ(options->endpoint.style, AddressStyle::kVirtual);
  EXPECT_EQ(options->part, std::uint64_t{8} << 20U);
  EXPECT_FALSE(options->sign_bodies);
}

TEST(ObjectOptions, AnEndpointHasTheBucketInThePath) {
  const auto options = resolveOptions(with({{"AWS_ENDPOINT_URL", "http://store:9000"},
                                            {"AWS_REGION", "eu-west-1"},
                                            {"VIADUCT_OBJECT_PART", "16MiB"},
                                            {"VIADUCT_OBJECT_CONNECTIONS", "4"}}));
  ASSERT_TRUE(options) << options.error().text();
  EXPECT_EQ(options->endpoint.host, "store");
  EXPECT_EQ(options->endpoint.style, AddressStyle::kPath);
  EXPECT_EQ(options->region, "eu-west-1");
  EXPECT_EQ(options->part, std::uint64_t{16} << 20U);
  EXPECT_EQ(options->connections, 4U);
  EXPECT_TRUE(options->sign_bodies) << "http protects no bytes";
}

TEST(ObjectOptions, RefuseAHalfPairOfKeysWithoutShowingIt) {
  const auto options = resolveOptions(with({{"AWS_ACCESS_KEY_ID", ""}}));
  ASSERT_FALSE(options);
  EXPECT_NE(options.error().text().find("AWS_SECRET_ACCESS_KEY is set"), std::string::npos);
  EXPECT_EQ(options.error().text().find("hidden word"), std::string::npos);
}

TEST(ObjectOptions, NoRowShowsASecret) {
  const Settings settings = with({{"AWS_SESSION_TOKEN", "hidden word"}});
  for (const SettingRow& row : kSettings)
    if (row.show != nullptr) {
      EXPECT_EQ(row.show(settings).find("hidden word"), std::string::npos) << row.variable;
    }
}

TEST(ObjectOptions, ReadTheSectionOfAFile) {
  testing::TemporaryFolder folder;
  folder.write("/credentials",
               "[default]\naws_access_key_id = A\n# aws_secret_access_key = no\n"
               "aws_secret_access_key=B==\n[ other ]\naws_access_key_id=C\n"
               "aws_secret_access_key=D\naws_session_token=E\n");
  const std::string file = folder.path() + "/credentials";
  const auto keys = [&](const std::string& profile) {
    return resolveOptions(with({{"AWS_ACCESS_KEY_ID", ""},
                                {"AWS_SECRET_ACCESS_KEY", ""},
                                {"AWS_SHARED_CREDENTIALS_FILE", file},
                                {"AWS_PROFILE", profile}}));
  };
  EXPECT_EQ(keys("")->credentials, (Credentials{"A", "B==", ""}));
  EXPECT_EQ(keys("other")->credentials, (Credentials{"C", "D", "E"}));
  const auto none = keys("nobody");
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().text().find("[nobody]"), std::string::npos) << none.error().text();
  EXPECT_NE(none.error().text().find(file), std::string::npos) << none.error().text();
}

}  // namespace
}  // namespace viaduct::object
