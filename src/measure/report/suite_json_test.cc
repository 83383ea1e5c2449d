#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "measure/report/suite.h"
#include "measure/report/suite_testing.h"

namespace viaduct::measure {
namespace {

using Json = nlohmann::json;

TEST(SuiteJson, ReadsBackAsItWasWritten) {
  for (const std::uint32_t rounds : {0U, 5U}) {
    const auto read = suiteFromJson(toJson(someSuite(rounds)), "f");
    ASSERT_TRUE(read) << read.error().text();
    EXPECT_EQ(*read, someSuite(rounds));
  }
  Suite strict = someSuite(1);
  strict.least_effect = 0.05;
  EXPECT_EQ(suiteFromJson(toJson(strict), "f")->least_effect, 0.05);
  Json without = Json::parse(toJson(strict));
  without.erase("least_effect");
  EXPECT_EQ(suiteFromJson(without.dump(), "f").error().detail, "least_effect is missing");
}

TEST(SuiteJson, ContainsTheAnswersForOtherPrograms) {
  const Json json = Json::parse(toJson(someSuite(5)));
  EXPECT_EQ(json.at("format"), "viaduct-suite/1");
  const Json& results = json.at("results");
  ASSERT_EQ(results.size(), 5U);
  EXPECT_FALSE(results[0].contains("answer")) << "the baseline is not compared with itself";
  for (const char* key : {"test", "size", "gb_per_s", "p50_us", "p95_us", "p99_us", "cores_busy",
                          "completions_per_s", "rails", "rate_improvement", "latency_improvement"})
    EXPECT_TRUE(results[2].contains(key)) << key;
  EXPECT_EQ(results[2].at("answer"), "helps");
  EXPECT_EQ(results[2].at("judged_by"), "p50");
  EXPECT_EQ(results[2].at("latency_improvement").at("interval_95").size(), 2U);
  EXPECT_EQ(results[4].at("answer"), "no difference seen");
  EXPECT_EQ(json.at("conclusion").at("absent"), "not built in");
}

TEST(SuiteJson, AWrongFieldIsNamed) {
  const Json good = Json::parse(toJson(someSuite(4)));
  const auto error = [](const Json& json) {
    const auto read = suiteFromJson(json.dump(), "f.json");
    return read ? std::string("read") : read.error().text();
  };
  const auto expect = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
    EXPECT_NE(text.find("f.json"), std::string::npos) << text;
  };
  Json bad = good;
  bad["format"] = "viaduct-suite/2";
  expect(error(bad), "its format is viaduct-suite/2");
  bad["format"] = "viaduct-bench/1";
  expect(error(bad), "this is a file of `viaduct bench`");
  bad = good;
  bad.erase("tests");
  expect(error(bad), "tests");
  bad = good;
  bad["tests"] = Json::array();
  expect(error(bad), "there are none");
  bad = good;
  bad["runs"][1]["test"] = "other";
  expect(error(bad), "\"other\" is none of its tests");
  bad = good;
  bad["runs"][1]["round"] = 4;
  expect(error(bad), "an unfinished round");
  bad = good;
  bad["runs"][2]["rows"][0]["block_size"] = "big";
  expect(error(bad), "runs[2].rows[0].block_size");
  expect(suiteFromJson("{\"format\": \"viaduct-su", "f.json").error().text(), "f.json");
}

TEST(SuiteJson, IsRecognised) {
  EXPECT_TRUE(isSuiteJson(toJson(someSuite(1))));
  EXPECT_TRUE(isSuiteJson("{\"format\": \"viaduct-suite/99\"}"));
  for (const char* text : {"", "[]", "{}", "{\"format\": 1}", "{\"format\": \"viaduct-bench/1\"}"})
    EXPECT_FALSE(isSuiteJson(text)) << text;
}

}  // namespace
}  // namespace viaduct::measure
