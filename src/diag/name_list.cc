#include "diag/name_list.h"

#include <algorithm>

#include "base/text.h"

namespace viaduct::diag {

NameList nameList(std::string_view text) {
  NameList out;
  out.excludes = text.starts_with('^');
  if (out.excludes) text.remove_prefix(1);
  out.exact = text.starts_with('=');
  if (out.exact) text.remove_prefix(1);
  for (const std::string& one : base::partsOf(text))
    out.names.push_back(one.substr(0, one.find(':')));
  return out;
}

bool NameList::matches(std::string_view name) const {
  return std::ranges::any_of(
      names, [&](const std::string& one) { return exact ? name == one : name.starts_with(one); });
}

}  // namespace viaduct::diag
