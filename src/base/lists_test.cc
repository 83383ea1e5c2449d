#include "base/lists.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace viaduct::base {
namespace {

struct Rail {
  std::string name = {};
  int speed = 0;
  bool fast() const { return speed >= 200; }
};
const std::vector<Rail> rails{{"a", 100}, {"b", 400}, {"c", 200}};

TEST(Lists, MapEachItemByAMemberOrAFunction) {
  EXPECT_EQ(mapped(rails, &Rail::name), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(mapped(rails, [](const Rail& one) { return one.speed / 100; }),
            (std::vector<int>{1, 4, 2}));
  const std::map<std::string, int> counts{{"x", 3}, {"y", 1}};
  EXPECT_EQ(mapped(counts, &std::map<std::string, int>::value_type::second),
            (std::vector<int>{3, 1}));
}

TEST(Lists, KeepTheOrderOfChosenItems) {
  const auto fast = only(rails, [](const Rail& one) { return one.fast(); });
  EXPECT_EQ(mapped(fast, &Rail::name), (std::vector<std::string>{"b", "c"}));
}

TEST(Lists, FindTheFirstItem) {
  EXPECT_TRUE(contains(mapped(rails, &Rail::speed), 400));
  EXPECT_FALSE(contains(mapped(rails, &Rail::speed), 300));
  EXPECT_EQ(firstOf(rails, [](const Rail& one) { return one.fast(); }), &rails[1]);
  EXPECT_EQ(firstWith(rails, &Rail::name, "c"), &rails[2]);
  EXPECT_EQ(firstWith(rails, &Rail::name, "d"), nullptr);
}

TEST(Lists, FindTheValueOfAKey) {
  std::map<std::string, int> counts{{"x", 3}};
  *valueAt(counts, "x") = 4;
  EXPECT_EQ(counts.at("x"), 4);
  EXPECT_EQ(valueAt(counts, "y"), nullptr);
}

}  // namespace
}  // namespace viaduct::base
