#include <fmt/format.h>
#include <viaduct/path.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "base/sizes.h"

namespace viaduct {
namespace {

std::string counted(std::uint64_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

// Describes a share: "16 ops and 2 batches (15 injected)".
std::string ordersOf(const PathShare& share) {
  std::string out = counted(share.ops, "op", "ops");
  if (share.batches > 0 && share.batches < share.ops)
    out += " and " + counted(share.batches, "batch", "batches");
  if (share.injected > 0) out += fmt::format(" ({} injected)", share.injected);
  return out;
}

bool sameRail(const PathShare& a, const PathShare& b) {
  return a.stage == b.stage && a.backend == b.backend && a.way == b.way && a.rail == b.rail;
}

// The shares of one stage, or of a direct path.
std::string sharesText(std::span<const PathShare> shares) {
  std::string out;
  for (const PathShare& share : shares) {
    const bool named = shares.size() > 1 && !share.rail.empty();
    out += fmt::format("{}{}/{}{}{} {} in {}", out.empty() ? "" : ", ", share.backend, share.way,
                       named ? " " : "", named ? share.rail : "", base::showSize(share.bytes),
                       ordersOf(share));
  }
  return out;
}

}  // namespace

std::string Path::text() const {
  if (shares.empty()) return "nothing moved";
  std::string out;
  for (auto at = shares.begin(); at != shares.end();) {
    const auto end = std::find_if(at, shares.end(),
                                  [&](const PathShare& one) { return one.stage != at->stage; });
    if (!out.empty()) out += at->stage > 1 ? " -> host -> " : ", ";
    out += sharesText({at, end});
    at = end;
  }
  return out;
}

void Path::add(PathShare share) {
  for (PathShare& known : shares)
    if (sameRail(known, share)) {
      known.bytes += share.bytes;
      known.ops += share.ops;
      known.injected += share.injected;
      known.batches += share.batches;
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
        share.injected -= known.injected;
        share.batches -= known.batches;
      }
    if (share.ops != 0) out.shares.push_back(std::move(share));
  }
  return out;
}

}  // namespace viaduct
