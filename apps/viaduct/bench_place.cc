#include "viaduct/bench_place.h"

#include "measure/load/machine.h"
#include "meet/groups/group.h"
#include "meet/place.h"
#include "viaduct/flags.h"

namespace viaduct::app {

using meet::PlaceOptions;

Result<std::optional<PlaceOptions>> placeOf(const MeetingOptions& o, const Settings& settings) {
  if (o.where.empty() && o.rank)
    return badFlag("--rank", "all workers run here and get their ranks automatically",
                   "give --meet to meet workers of other machines");
  if (o.where.empty()) return std::optional<PlaceOptions>();
  PlaceOptions place{.where = o.where,
                     .kind = o.kind,
                     .token = settings.secret,
                     .name_space = settings.name_space,
                     .user = settings.meet_user,
                     .password = settings.meet_password,
                     .ca_file = settings.meet_ca,
                     .certificate_file = settings.meet_certificate,
                     .key_file = settings.meet_key,
                     .detect = settings.detect,
                     .serve = true,
                     .insecure = settings.insecure};
  // Reports wrong options of the place before any measurement. Nothing is sent to it yet.
  VIADUCT_CHECK(meet::openGroupPlace(place));
  return std::optional(std::move(place));
}

void listenForOthers(const PlaceOptions& place, Settings& settings) {
  const bool here = !meet::isEtcd(place) &&
                    (place.where.starts_with("127.") || place.where.starts_with("localhost:") ||
                     place.where.starts_with("[::1]"));
  if (settings.listen != Settings{}.listen) return;
  settings.listen =
      here ? measure::listenHere(settings.rails) : std::vector<std::string>{"0.0.0.0:0"};
}

}  // namespace viaduct::app
