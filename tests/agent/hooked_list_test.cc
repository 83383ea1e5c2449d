#include "agent/traffic/hooked_list.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <vector>

namespace viaduct::agent {
namespace {

struct Element {
  int number = 0;
  Hook<Element> hook = {};
};

class HookedListTest : public ::testing::Test {
 protected:
  HookedListTest() {
    for (int i = 0; i < 4; ++i) {
      elements_[static_cast<std::size_t>(i)] = std::make_unique<Element>(Element{i});
      list_.add(at(i));
    }
  }
  Element& at(int i) { return *elements_[static_cast<std::size_t>(i)]; }
  void destroy(int i) {
    list_.remove(at(i));
    elements_[static_cast<std::size_t>(i)].reset();
  }
  std::vector<int> numbers() {
    std::vector<int> out;
    list_.forEach([&](const Element& one) { out.push_back(one.number); });
    return out;
  }

  std::array<std::unique_ptr<Element>, 4> elements_;
  HookedList<Element, &Element::hook> list_;
};

TEST_F(HookedListTest, KeepsTheOrderOfEntry) {
  list_.remove(at(1));
  list_.remove(at(0));
  list_.remove(at(3));
  EXPECT_FALSE(at(1).hook.in);
  EXPECT_TRUE(at(2).hook.in);
  list_.add(at(1));
  EXPECT_EQ(numbers(), (std::vector{2, 1}));
  EXPECT_TRUE(list_.none([](const Element& one) { return one.number == 0; }));
  EXPECT_FALSE(list_.none([](const Element& one) { return one.number == 1; }));
}

TEST_F(HookedListTest, AVisitMayDestroyAnyElements) {
  std::vector<int> visited;
  list_.forEach([&](const Element& one) {
    visited.push_back(one.number);
    if (one.number != 1) return;
    for (const int i : {0, 1, 2}) destroy(i);
  });
  EXPECT_EQ(visited, (std::vector{0, 1, 3}));
  EXPECT_EQ(numbers(), (std::vector{3}));
}

TEST_F(HookedListTest, AWalkInsideAWalkMayDestroyElementsOfBoth) {
  std::vector<int> visited;
  list_.forEach([&](const Element& outer) {
    visited.push_back(outer.number);
    if (outer.number != 0) return;
    list_.forEach([&](const Element& inner) {
      if (inner.number == 1) destroy(1);
    });
  });
  EXPECT_EQ(visited, (std::vector{0, 2, 3}));
}

}  // namespace
}  // namespace viaduct::agent
