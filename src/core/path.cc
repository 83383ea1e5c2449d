#include <fmt/format.h>
#include <viaduct/path.h>

#include "base/sizes.h"

namespace viaduct {

std::string Path::text() const {
  std::string out;
  for (const PathShare& share : shares) {
    const bool named = shares.size() > 1 && !share.rail.empty();
    out += fmt::format("{}{}/{}{}{} {} in {} {}", out.empty() ? "" : ", ", share.backend, share.way,
                       named ? " " : "", named ? share.rail : "", base::showSize(share.bytes),
                       share.ops, share.ops == 1 ? "op" : "ops");
  }
  return out.empty() ? "nothing moved" : out;
}

}  // namespace viaduct
