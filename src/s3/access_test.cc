#include "s3/access.h"

#include <gtest/gtest.h>

#include "support/temporary_folder.h"

namespace viaduct::s3 {
namespace {

Settings with(std::map<std::string, std::string, std::less<>> values) {
  values.try_emplace("AWS_ACCESS_KEY_ID", "AKID");
  values.try_emplace("AWS_SECRET_ACCESS_KEY", "hidden word");
  Settings out;
  out.others = std::move(values);
  return out;
}

TEST(Access, RefusesAHalfPairOfKeysWithoutShowingIt) {
  const auto access = resolveAccess(with({{"AWS_ACCESS_KEY_ID", ""}}));
  ASSERT_FALSE(access);
  EXPECT_NE(access.error().text().find("AWS_SECRET_ACCESS_KEY is set"), std::string::npos);
  EXPECT_EQ(access.error().text().find("hidden word"), std::string::npos);
}

TEST(Access, ReadsTheSectionOfAFile) {
  testing::TemporaryFolder folder;
  folder.write("/credentials",
               "[default]\naws_access_key_id = A\n# aws_secret_access_key = no\n"
               "aws_secret_access_key=B==\n[ other ]\naws_access_key_id=C\n"
               "aws_secret_access_key=D\naws_session_token=E\n");
  const std::string file = folder.path() + "/credentials";
  const auto keys = [&](const std::string& profile) {
    return resolveAccess(with({{"AWS_ACCESS_KEY_ID", ""},
                               {"AWS_SECRET_ACCESS_KEY", ""},
                               {"VIADUCT_OBJECT_CREDENTIALS", file},
                               {"VIADUCT_OBJECT_PROFILE", profile}}));
  };
  EXPECT_EQ(keys("default")->credentials, (Credentials{"A", "B==", ""}));
  EXPECT_EQ(keys("other")->credentials, (Credentials{"C", "D", "E"}));
  const auto none = keys("nobody");
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().text().find("[nobody]"), std::string::npos) << none.error().text();
  EXPECT_NE(none.error().text().find(file), std::string::npos) << none.error().text();
}

TEST(Access, NeedsNoKeysForTheEndpoint) {
  Settings settings;
  EXPECT_EQ(*resolveEndpoint(settings), amazonEndpoint("us-east-1"));
  settings.others = {{"VIADUCT_OBJECT_ENDPOINT", "http://store:9000/s3/"},
                     {"VIADUCT_OBJECT_STYLE", "virtual"}};
  EXPECT_EQ(resolveEndpoint(settings)->style, AddressStyle::kVirtual);
  EXPECT_EQ(endpointText(*resolveEndpoint(settings)), "http://store:9000/s3");
}

}  // namespace
}  // namespace viaduct::s3
