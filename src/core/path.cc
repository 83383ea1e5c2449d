#include <fmt/format.h>
#include <viaduct/path.h>

#include <utility>

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

namespace {

bool sameRail(const PathShare& a, const PathShare& b) {
  return a.backend == b.backend && a.way == b.way && a.rail == b.rail;
}

}  // namespace

void Path::add(PathShare share) {
  for (PathShare& known : shares)
    if (sameRail(known, share)) {
      known.bytes += share.bytes;
      known.ops += share.ops;
      return;
    }
  shares.push_back(std::move(share));
}

Path Path::since(const Path& before) const {
  Path out;
  for (PathShare share : shares) {
    for (const PathShare& known : before.shares)
      if (sameRail(known, share)) {
        share.bytes -= known.bytes;
        share.ops -= known.ops;
      }
    if (share.ops != 0) out.shares.push_back(std::move(share));
  }
  return out;
}

}  // namespace viaduct
