// A set of numbers that mostly ascend: consecutive numbers are kept as one interval.
// Threads: plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>

namespace viaduct::agent {

class NumberSet {
 public:
  void add(std::uint64_t number) {
    if (has(number)) return;
    std::uint64_t end = number + 1;
    auto after = ends_.lower_bound(number);
    if (after != ends_.end() && after->first == end) {
      end = after->second;
      after = ends_.erase(after);
    }
    if (after != ends_.begin() && std::prev(after)->second == number)
      std::prev(after)->second = end;
    else
      ends_.emplace_hint(after, number, end);
  }
  bool has(std::uint64_t number) const {
    const auto after = ends_.upper_bound(number);
    return after != ends_.begin() && number < std::prev(after)->second;
  }
  std::size_t intervals() const { return ends_.size(); }
  void clear() { ends_.clear(); }

 private:
  std::map<std::uint64_t, std::uint64_t> ends_;  // by the first number of an interval
};

}  // namespace viaduct::agent
