#include <fmt/format.h>
#include <viaduct/path.h>

#include <algorithm>
#include <functional>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/lists.h"
#include "base/sizes.h"

namespace viaduct {
namespace {

std::string counted(std::uint64_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

// Describes a share: "16 ops and 2 batches (15 injected)", "16 ops (16 by kernel)".
std::string ordersOf(const PathShare& share) {
  std::string out = counted(share.ops, "op", "ops");
  if (share.batches > 0 && share.batches < share.ops)
    out += " and " + counted(share.batches, "batch", "batches");
  if (share.injected > 0) out += fmt::format(" ({} injected)", share.injected);
  if (share.by_kernel > 0) out += fmt::format(" ({} by kernel)", share.by_kernel);
  return out;
}

// The share of the same stage, backend, way and rail. Null: there is none.
template <class Shares>
auto shareOf(Shares& shares, const PathShare& of) {
  return base::firstOf(shares, [&](const PathShare& one) {
    return std::tie(one.stage, one.backend, one.way, one.rail) ==
           std::tie(of.stage, of.backend, of.way, of.rail);
  });
}

// Replaces each amount of `share` by change(this amount, the same amount of `other`).
void combine(PathShare& share, const PathShare& other, auto change) {
  for (auto amount : {&PathShare::bytes, &PathShare::ops, &PathShare::injected, &PathShare::batches,
                      &PathShare::busy_ns, &PathShare::by_kernel})
    share.*amount = change(share.*amount, other.*amount);
}

// The shares of one stage, or of a direct path.
std::string sharesText(std::span<const PathShare> shares) {
  std::string out;
  for (const PathShare& share : shares) {
    const bool named = shares.size() > 1 && !share.rail.empty();
    out += fmt::format("{}{}/{}{}{} {} in {}", out.empty() ? "" : ", ", share.backend, share.way,
                       named ? " " : "", named ? share.rail : "", base::roundedSize(share.bytes),
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
    if (!out.empty()) {
      const bool gpu = at->gpu_ring || std::prev(at)->gpu_ring;
      out += at->stage <= 1 ? ", " : gpu ? " -> GPU -> " : " -> host -> ";
    }
    out += sharesText({at, end});
    at = end;
  }
  return out;
}

void Path::add(PathShare share) {
  if (PathShare* const known = shareOf(shares, share))
    combine(*known, share, std::plus{});
  else
    shares.push_back(std::move(share));
}

Path Path::since(const Path& before) const {
  Path out;
  for (PathShare share : shares) {
    if (const PathShare* const known = shareOf(before.shares, share))
      combine(share, *known, std::minus{});
    if (share.ops != 0) out.shares.push_back(std::move(share));
  }
  return out;
}

}  // namespace viaduct
