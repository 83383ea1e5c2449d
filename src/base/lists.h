// Makes lists from other lists, and searches lists and maps. Threads: pure functions.
#pragma once

#include <algorithm>
#include <functional>
#include <iterator>
#include <type_traits>
#include <vector>

namespace viaduct::base {

// The results of `of` for all items. `of` is a function of an item, or one of its members.
template <class Items, class Of>
auto mapped(const Items& items, Of of) {
  std::vector<std::decay_t<std::invoke_result_t<Of&, decltype(*std::begin(items))>>> out;
  out.reserve(std::size(items));
  for (const auto& item : items) out.push_back(std::invoke(of, item));
  return out;
}

// The items for which `is` is true, in the same order.
template <class Item, class Is>
std::vector<Item> only(const std::vector<Item>& items, Is is) {
  std::vector<Item> out;
  std::copy_if(items.begin(), items.end(), std::back_inserter(out), is);
  return out;
}

// The items of both lists, in the same order.
template <class Items, class More>
auto joined(const Items& items, const More& more) {
  std::vector out(std::begin(items), std::end(items));
  out.insert(out.end(), std::begin(more), std::end(more));
  return out;
}

template <class Items, class Item>
bool contains(const Items& items, const Item& item) {
  return std::find(std::begin(items), std::end(items), item) != std::end(items);
}

// The first item for which `is` is true. Null: there is none.
template <class Items, class Is>
auto firstOf(Items& items, Is is) -> decltype(&*std::begin(items)) {
  const auto at = std::find_if(std::begin(items), std::end(items), is);
  return at == std::end(items) ? nullptr : &*at;
}

// The first item that has this value of a member. Null: there is none.
template <class Items, class Member, class Value>
auto firstWith(Items& items, Member member, const Value& value) {
  return firstOf(items, [&](const auto& item) { return std::invoke(member, item) == value; });
}

// The value of a key in a map. Null: the map lacks the key.
template <class Map, class Key>
auto valueAt(Map& map, const Key& key) -> decltype(&map.find(key)->second) {
  const auto at = map.find(key);
  return at == map.end() ? nullptr : &at->second;
}

}  // namespace viaduct::base
