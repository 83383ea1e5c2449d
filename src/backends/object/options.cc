#include "backends/object/options.h"

#include "backends/object/facts.h"
#include "base/sizes.h"

namespace viaduct::object {

Result<Options> resolveOptions(const Settings& settings) {
  Options out;
  VIADUCT_TRY(out.access, s3::resolveAccess(settings));
  VIADUCT_TRY(out.part, base::parseSize(otherText(settings, kPartSize, kDefaultPart)));
  VIADUCT_CHECK(core::parseCount(otherText(settings, kConnections, kDefaultConnections), 1, 256,
                                 out.connections));
  VIADUCT_CHECK(
      core::parseCount(otherText(settings, kRetries, kDefaultRetries), 0, 100, out.retries));
  const std::string sign = otherText(settings, kSignBodies);
  out.sign_bodies = sign.empty() ? !out.access.endpoint.tls : sign == "on";
  return out;
}

}  // namespace viaduct::object
