#include "meet/embedded/site.h"

#include <fmt/format.h>

#include <utility>

#include "base/net/address.h"

namespace viaduct::meet::embedded {

Result<SitePtr> openSite(Site site) {
  VIADUCT_TRY(site.loop, Loop::start("viaduct meeting"));
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
