#include "measure/workload/hints.h"

#include <algorithm>

namespace viaduct::measure {

std::string joined(std::initializer_list<Hint> hints, const FlagNames& flags) {
  std::vector<std::string_view> texts;
  for (const Hint& hint : hints)
    if (hint.flag.empty() || std::ranges::find(flags, hint.flag) != flags.end())
      texts.push_back(hint.text);
  std::string out;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    out += i == 0 ? "" : i + 1 == texts.size() ? " or " : ", ";
    out += texts[i];
  }
  return out;
}

}  // namespace viaduct::measure
