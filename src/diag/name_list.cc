#include "diag/name_list.h"

#include <algorithm>

namespace viaduct::diag {

std::vector<std::string> partsOf(std::string_view text, char between) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const std::string_view one = text.substr(0, text.find(between));
    text.remove_prefix(std::min(one.size() + 1, text.size()));
    if (!one.empty()) out.emplace_back(one);
  }
  return out;
}

NameList nameList(std::string_view text) {
  NameList out;
  out.excludes = text.starts_with('^');
  if (out.excludes) text.remove_prefix(1);
  out.exact = text.starts_with('=');
  if (out.exact) text.remove_prefix(1);
  for (const std::string& one : partsOf(text)) out.names.push_back(one.substr(0, one.find(':')));
  return out;
}

bool NameList::matches(std::string_view name) const {
  return std::any_of(names.begin(), names.end(), [&](const std::string& one) {
    return exact ? name == one : name.starts_with(one);
  });
}

}  // namespace viaduct::diag
