#include "base/nearest.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/text.h"

namespace viaduct::base {

std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({changed, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

std::string nearest(std::string_view word, std::span<const std::string> names) {
  std::string out;
  for (const std::string& name : names) {
    const std::size_t apart = distance(lower(name), lower(word));
    // A name with no letter in common is not near, however short it is.
    if (apart <= 2 && apart < std::min(name.size(), word.size()))
      out += (out.empty() ? "" : " or ") + name;
  }
  return out;
}

}  // namespace viaduct::base
