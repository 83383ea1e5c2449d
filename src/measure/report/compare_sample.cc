#include "measure/report/compare_sample.h"

#include <fmt/format.h>

namespace viaduct::measure {

std::string Sample::complaint(const std::string& whose) const {
  for (const Rows& rows : runs_)
    for (const Row* row : rows)
      if (!isGood(row->verdict))
        return fmt::format("{} is {}: {}", whose, verdictName(row->verdict), row->why);
  return {};
}

}  // namespace viaduct::measure
