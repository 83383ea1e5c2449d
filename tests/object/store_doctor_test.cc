// The doctor's test of an object store, against the fake server.
#include "app/program.h"
#include "base/json.h"
#include "diag/live_storage.h"
#include "object/object_testing.h"
#include "support/free_port.h"
#include "support/paths.h"
#include "support/temporary_folder.h"
#include "support/text.h"

namespace viaduct::testing {
namespace {

using diag::StoreFacts;
using diag::StoreStep;

class StoreDoctor : public ObjectTest {
 protected:
  using ObjectTest::ObjectTest;
  StoreFacts look(const std::string& bucket = "kv") const {
    const StoreFacts out = diag::lookAtStore(settings(), bucket);
    for (const std::string& text : {out.text, out.cause, out.remedy, out.endpoint})
      EXPECT_FALSE(has(text, "fakesecret") || has(text, "FAKEKEY")) << text;
    return out;
  }
  StoreFacts lookAt(const std::string& endpoint) {
    more_["VIADUCT_OBJECT_ENDPOINT"] = endpoint;
    return look();
  }
};

TEST_F(StoreDoctor, FindsTheBucketAndTheListOfBuckets) {
  for (const char* bucket : {"kv", ""}) {
    const StoreFacts found = look(bucket);
    EXPECT_EQ(found.ended, StoreStep::kWorks) << found.text;
    EXPECT_EQ(found.endpoint, "http://127.0.0.1:" + port_);
    EXPECT_LT(found.clock_off.value_or(1000), 100U);
  }
  EXPECT_EQ(tell("count GET"), "2");
}

TEST_F(StoreDoctor, NamesTheStepThatFails) {
  const StoreFacts absent = look("other");
  EXPECT_EQ(absent.ended, StoreStep::kBucket) << absent.text;
  EXPECT_TRUE(has(absent.text, "NoSuchBucket")) << absent.text;
  tell("fault GET 403 1");
  EXPECT_EQ(look().ended, StoreStep::kRights);
  tell("fault GET 500 1");
  EXPECT_EQ(look().ended, StoreStep::kAnswer);
  tell("fault GET page 1");
  const StoreFacts page = look();
  EXPECT_EQ(page.ended, StoreStep::kAnswer);
  EXPECT_TRUE(has(page.cause, "console")) << page.cause;
  tell("fault GET reset 1");
  EXPECT_EQ(look().ended, StoreStep::kPort);

  EXPECT_EQ(lookAt("http://127.0.0.1:" + std::to_string(freePort())).ended, StoreStep::kPort);
  EXPECT_EQ(lookAt("http://store.invalid").ended, StoreStep::kName);
  EXPECT_EQ(lookAt("https://127.0.0.1:" + port_).ended, StoreStep::kTls) << "the server has none";
  EXPECT_EQ(lookAt("store:9000").ended, StoreStep::kSettings);
}

TEST_F(StoreDoctor, TellsWrongKeysFromMissingOnes) {
  more_["AWS_SECRET_ACCESS_KEY"] = "another";
  EXPECT_EQ(look().ended, StoreStep::kKeys);
  more_ = {{"AWS_ACCESS_KEY_ID", "another"}};
  EXPECT_EQ(look().ended, StoreStep::kKeys);
  more_ = {{"AWS_ACCESS_KEY_ID", ""}};
  const StoreFacts half = look();
  EXPECT_EQ(half.ended, StoreStep::kKeys);
  EXPECT_TRUE(has(half.text, "only AWS_SECRET_ACCESS_KEY is set")) << half.text;
}

TEST_F(StoreDoctor, TellsByHowMuchTheClocksDiffer) {
  tell("clock 600");
  const StoreFacts behind = look();
  EXPECT_EQ(behind.ended, StoreStep::kWorks) << behind.text;
  EXPECT_TRUE(behind.behind);
  EXPECT_NEAR(static_cast<double>(behind.clock_off.value_or(0)), 600, 100);
  tell("clock -3600");
  const StoreFacts refused = look();
  EXPECT_EQ(refused.ended, StoreStep::kClock) << refused.text;
  EXPECT_TRUE(has(refused.cause, "ahead of")) << refused.cause;
}

TEST_F(StoreDoctor, TellsANameThatTheCertificateLacks) {
  const TemporaryFolder folder;
  const std::string key = folder.path() + "/key", certificate = folder.path() + "/certificate";
  ASSERT_EQ(std::system(("openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=other "
                         "-keyout " +
                         key + " -out " + certificate + " 2>/dev/null")
                            .c_str()),
            0);
  Process server({kServersPython, "-B", kFakeS3, "--tls", certificate, key});
  const StoreFacts found = lookAt("https://127.0.0.1:" + server.answer().value_or("none"));
  EXPECT_EQ(found.ended, StoreStep::kTls) << found.text;
  EXPECT_TRUE(has(found.remedy, "VIADUCT_OBJECT_CA")) << found.remedy;
}

// The program reads the variables, asks only if it has a reason, and prints no key.
TEST_F(StoreDoctor, IsPartOfTheProgram) {
  const std::vector<std::string> keys{"AWS_ACCESS_KEY_ID=FAKEKEY",
                                      "AWS_SECRET_ACCESS_KEY=fakesecret", "no_proxy=*"};
  const auto run = [&](std::vector<std::string> words, const std::string& endpoint) {
    words.insert(words.begin(), {"doctor", "--only", "storage", "--json"});
    auto environment = keys;
    if (!endpoint.empty()) environment.push_back(endpoint);
    Program program(words, environment);
    const int code = program.finish();
    EXPECT_FALSE(has(program.out() + program.err(), "fakesecret"));
    EXPECT_FALSE(has(program.out() + program.err(), "FAKEKEY"));
    return std::pair(code, program.out());
  };
  EXPECT_EQ(run({}, "").first, 0);
  EXPECT_EQ(tell("count GET"), "0") << "nobody named a store";
  const std::string endpoint = "AWS_ENDPOINT_URL=http://127.0.0.1:" + port_;
  EXPECT_EQ(run({}, endpoint).first, 0);
  EXPECT_EQ(tell("count GET"), "1");
  const auto [code, out] = run({"--bucket", "s3://kv,other"}, endpoint);
  EXPECT_EQ(code, 2);
  const auto json = base::parseJson(out);
  ASSERT_TRUE(json) << out;
  ASSERT_EQ((*json)["findings"].size(), 1U) << out;
  EXPECT_EQ((*json)["findings"][0]["code"], "storage.store-bucket");
  EXPECT_FALSE((*json)["findings"][0]["fix"].get<std::string>().empty());
  EXPECT_EQ((*json)["in_order"].size(), 1U);
  EXPECT_EQ(run({"--bucket", "s3://kv/key"}, endpoint).first, 3);
}

}  // namespace
}  // namespace viaduct::testing
