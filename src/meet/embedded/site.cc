#include "meet/embedded/site.h"

#include <fmt/format.h>

#include <utility>

#include "base/net/address.h"
#include "meet/shared.h"

namespace viaduct::meet::embedded {

std::uint64_t Turns::ask(std::function<void()> begin) {
  const std::uint64_t turn = ++last_;
  if (running_ < kAtOnce) {
    ++running_;
    begin();
  } else {
    waiting_.emplace(turn, std::move(begin));
  }
  return turn;
}

void Turns::end(std::uint64_t turn) {
  if (turn == 0 || waiting_.erase(turn) > 0) return;
  if (waiting_.empty()) {
    --running_;
    return;
  }
  const auto next = waiting_.extract(waiting_.begin());
  next.mapped()();
}

Result<SitePtr> openSite(Site site) {
  static Shared<Loop> loops;
  static Shared<Turns> turns;
  VIADUCT_TRY(site.loop, loops.get("", []() -> Result<std::shared_ptr<Loop>> {
    VIADUCT_TRY(std::shared_ptr<Loop> started, Loop::start("viaduct meeting"));
    return started;
  }));
  VIADUCT_TRY(site.turns, turns.get("", [] {
    return Result<std::shared_ptr<Turns>>(std::make_shared<Turns>());
  }));
  return std::make_shared<const Site>(std::move(site));
}

Result<SitePtr> siteOf(const PlaceOptions& options) {
  VIADUCT_TRY(const auto where, base::parseHostPort(options.where));
  if (where.port == 0 || where.host == "*")
    return Error{
        .operation = "meeting place",
        .detail = fmt::format("\"{}\" is not an address that members can reach", options.where),
        .remedy = "give a host and port that all members can reach"};
  return openSite({.where = options.where,
                   .name_space = options.name_space.empty() ? "/viaduct" : options.name_space,
                   .addresses = {options.where},
                   .token = base::secretFromText(options.token),
                   .waiting = options.waiting});
}

}  // namespace viaduct::meet::embedded
