#include "backends/object/object_options.h"

#include <gtest/gtest.h>
#include <stdlib.h>

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

constexpr std::pair<const char*, const char*> kWrong[] = {
    {"VIADUCT_OBJECT_STYLE", "host"},        {"VIADUCT_OBJECT_PART", "1MiB"},
    {"VIADUCT_OBJECT_CONNECTIONS", "0"},     {"VIADUCT_OBJECT_RETRIES", "101"},
    {"VIADUCT_OBJECT_SIGN_BODIES", "maybe"},
};

TEST(ObjectOptions, WrongValuesAreRefusedWhenTheyAreSet) {
  for (const auto& [variable, value] : kWrong) {
    ASSERT_EQ(::setenv(variable, value, 1), 0);
    const auto read = settingsFromEnvironment();
    ::unsetenv(variable);
    ASSERT_FALSE(read) << variable;
    EXPECT_NE(read.error().text().find(variable), std::string::npos) << read.error().text();
    Settings settings;
    settings.others[variable] = value;
    const auto checked = checkSettings(settings);
    ASSERT_FALSE(checked) << variable;
    EXPECT_NE(checked.error().text().find(variable), std::string::npos) << checked.error().text();
  }
}

TEST(ObjectOptions, AWrongEndpointIsRefusedWithoutItsPassword) {
  ASSERT_EQ(::setenv("VIADUCT_OBJECT_ENDPOINT", "http://user:hidden@store", 1), 0);
  const auto read = settingsFromEnvironment();
  ::unsetenv("VIADUCT_OBJECT_ENDPOINT");
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().text().find("https://host"), std::string::npos) << read.error().text();
  EXPECT_EQ(read.error().text().find("hidden"), std::string::npos) << read.error().text();
  // Other programs read this variable as well.
  ASSERT_EQ(::setenv("AWS_ENDPOINT_URL", "store:9000", 1), 0);
  const auto alias = settingsFromEnvironment();
  ::unsetenv("AWS_ENDPOINT_URL");
  ASSERT_TRUE(alias) << alias.error().text();
  EXPECT_TRUE(checkSettings(*alias));
  EXPECT_FALSE(resolveOptions(*alias));
}

TEST(ObjectOptions, AutoIsTheStyleOfTheEndpoint) {
  Settings settings = with({{"AWS_ENDPOINT_URL", "http://store"}});
  settings.others["VIADUCT_OBJECT_STYLE"] = "auto";
  settings.others["VIADUCT_OBJECT_SIGN_BODIES"] = "auto";
  const auto options = resolveOptions(settings);
  ASSERT_TRUE(options) << options.error().text();
  EXPECT_EQ(options->access.endpoint.style, s3::AddressStyle::kPath);
  EXPECT_TRUE(options->sign_bodies);
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
