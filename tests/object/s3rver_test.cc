// Tests our client against s3rver, a server that others wrote (npm install -g s3rver). The test
// looks for s3rver in the variable S3RVER and in PATH.
#include <unistd.h>

#include <cstdlib>

#include "base/text.h"
#include "object/object_testing.h"
#include "support/temporary_folder.h"

namespace viaduct::testing {
namespace {

std::string s3rver() {
  if (const char* const named = std::getenv("S3RVER")) return named;
  const char* const path = std::getenv("PATH");
  for (const std::string& folder : base::partsOf(path == nullptr ? "" : path, ':'))
    if (::access((folder + "/s3rver").c_str(), X_OK) == 0) return folder + "/s3rver";
  return {};
}

class S3rver : public ObjectTest {
 protected:
  void SetUp() override {
    if (s3rver().empty()) GTEST_SKIP() << "skipped: no s3rver (npm install -g s3rver)";
    other_ = std::make_unique<Process>(std::vector<std::string>{
        s3rver(), "-d", folder_.path(), "-a", "127.0.0.1", "-p", "0", "--configure-bucket", "kv"});
    std::string line;
    while (line.find("listening on") == std::string::npos) {
      const auto next = other_->answer(60s);
      ASSERT_TRUE(next) << "s3rver did not start";
      line = *next;
    }
    more_ = {{"VIADUCT_OBJECT_ENDPOINT", "http://127.0.0.1" + line.substr(line.rfind(':'))},
             {"AWS_ACCESS_KEY_ID", "S3RVER"},
             {"AWS_SECRET_ACCESS_KEY", "S3RVER"}};
  }

  TemporaryFolder folder_;
  std::unique_ptr<Process> other_;
};

TEST_F(S3rver, KeepsObjectsOfOneRequestAndOfManyParts) {
  open();
  for (const std::uint64_t bytes : {std::uint64_t{100'003}, 20 * kMiB + 5}) {
    const auto written = write("a b/+=*&", bytes);
    ASSERT_TRUE(written) << written.error().text();
    std::vector<std::uint64_t> memory(bytes / 8 + 1);
    const auto done = read(memory, "a b/+=*&");
    ASSERT_TRUE(done) << done.error().text();
    EXPECT_TRUE(isPattern(memory, bytes));
  }
}

// s3rver does not check signatures of version 4, so a wrong secret would pass.
TEST_F(S3rver, RefusesAnUnknownKey) {
  more_["AWS_ACCESS_KEY_ID"] = "OTHER";
  open();
  expectSays(write("k", 8), Code::kDenied, {"InvalidAccessKeyId"});
}

TEST_F(S3rver, HasNoObjectOfThatName) {
  open();
  const auto pin = pinObject("k");
  ASSERT_FALSE(pin);
  EXPECT_EQ(pin.error().code, Code::kNotFound) << pin.error().text();
}

}  // namespace
}  // namespace viaduct::testing
