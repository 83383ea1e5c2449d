#include "backends/object/object_options.h"

#include "backends/object/facts.h"

namespace viaduct::object {

Result<ObjectOptions> resolveOptions(const Settings& settings) {
  ObjectOptions out{.part = kPartSize.of(settings),
                    .connections = kConnections.of(settings),
                    .retries = kRetries.of(settings)};
  VIADUCT_TRY(out.access, s3::resolveAccess(settings));
  const Toggle sign = kSignBodies.of(settings);
  out.sign_bodies = sign == Toggle::kAuto ? !out.access.endpoint.tls : sign == Toggle::kOn;
  return out;
}

}  // namespace viaduct::object
