#include "measure/workload/trace_fields.h"

#include <gtest/gtest.h>

namespace viaduct::measure {
namespace {

using Words = std::vector<std::string>;

TEST(CsvFields, SplitsAtCommasOutsideOfQuotes) {
  EXPECT_EQ(*csvFieldsOf("a,b,c"), (Words{"a", "b", "c"}));
  EXPECT_EQ(*csvFieldsOf(" a , ,"), (Words{"a", "", ""}));
  EXPECT_EQ(*csvFieldsOf(""), Words{""});
  EXPECT_EQ(*csvFieldsOf(R"("a,b", "say ""hi""" ,"")"), (Words{"a,b", R"(say "hi")", ""}));
}

TEST(CsvFields, RefusesQuotesThatDoNotFit) {
  for (const char* line : {R"("a)", R"(a,"b""c)", R"("a"b,c)"}) EXPECT_FALSE(csvFieldsOf(line));
  EXPECT_TRUE(csvFieldsOf(std::string(255, ',')));
  EXPECT_FALSE(csvFieldsOf(std::string(256, ',')));
}

TEST(TraceFields, NumbersHaveLimits) {
  const auto json = base::parseJson(
      R"({"a": 27.0, "b": 1.5, "c": -1, "d": 1e300, "e": "7", "f": null, "g": true,
          "h": 18446744073709551615, "i": [18446744073709551615], "j": [1.5]})");
  ASSERT_TRUE(json);
  const TraceFields fields(*json);
  EXPECT_EQ(*fields.whole("a", 27), 27U);
  EXPECT_FALSE(fields.whole("a", 26));
  for (const char* name : {"b", "c", "d", "e", "f", "g", "h", "missing"}) {
    EXPECT_FALSE(fields.whole(name, 1000)) << name;
    EXPECT_EQ(fields.time(name, 1e6).has_value(), std::string_view(name) == "b") << name;
  }
  EXPECT_EQ(*fields.time("b", 1e6), 1'500'000U);
  EXPECT_EQ(fields.list("i")->front(), 18'446'744'073'709'551'615U);
  EXPECT_FALSE(fields.list("j"));
  EXPECT_FALSE(fields.list("a"));
  EXPECT_NE(fields.identity("a"), fields.identity("e"));
}

TEST(TraceFields, RowsHaveTheirColumnsInAnyOrderAndCase) {
  const Words names{"Model", "Request Tokens"}, row{"GPT-4", "12"};
  const TraceFields fields(names, row);
  EXPECT_TRUE(fields.has("request tokens"));
  EXPECT_EQ(*fields.whole("request tokens", 100), 12U);
  EXPECT_FALSE(fields.whole("Model", 100));
  EXPECT_FALSE(fields.has("hash_ids"));
}

}  // namespace
}  // namespace viaduct::measure
