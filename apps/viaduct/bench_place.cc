#include "viaduct/bench_place.h"

#include <fmt/format.h>

#include <array>

#include "base/text.h"
#include "measure/load/machine.h"
#include "meet/groups/group.h"
#include "meet/place.h"
#include "viaduct/bench_values.h"

namespace viaduct::app {
namespace {

using meet::PlaceKind;
using meet::PlaceOptions;

constexpr auto kUsualEtcd = "http://localhost:2379";
constexpr std::array<std::string_view, 5> kOfEtcd{"etcd_user", "etcd_password", "etcd_ca",
                                                  "etcd_cert", "etcd_key"};

const std::string& either(const std::string& flag, const std::string& setting) {
  return flag.empty() ? setting : flag;
}

// Returns the credentials and settings that apply to any meeting place.
PlaceOptions keysOf(const BenchOptions& o, const Settings& settings) {
  return {.token = settings.secret,
          .name_space = settings.name_space,
          .user = either(o.etcd_user, settings.meet_user),
          .password = either(o.etcd_password, settings.meet_password),
          .ca_file = either(o.etcd_ca, settings.meet_ca),
          .certificate_file = either(o.etcd_cert, settings.meet_certificate),
          .key_file = either(o.etcd_key, settings.meet_key),
          .detect = settings.detect,
          .insecure = settings.insecure};
}

std::optional<PlaceOptions> chosen(const BenchOptions& o, const Settings& settings, bool stored) {
  PlaceOptions place = keysOf(o, settings);
  const bool asio = base::sameWord(o.runtime_type, "ASIO");
  if (!o.meet.empty() || asio) {
    place.kind = PlaceKind::kEmbedded;
    place.where = asio ? fmt::format("{}:{}", o.asio_address, o.asio_port) : o.meet;
    place.serve = true;
    return place;
  }
  if (!o.etcd_endpoints.empty()) {
    place.kind = PlaceKind::kEtcd;
    place.where = o.etcd_endpoints;
    return place;
  }
  // Only nixlbench uses the agents' meeting place by default. A `viaduct bench` without a place
  // runs on this machine alone, and so does a nixlbench with storage.
  if (o.local_workers != 0 || !((o.as_nixlbench && !stored) || o.has("runtime_type")))
    return std::nullopt;
  place.where = settings.meet.empty() ? kUsualEtcd : settings.meet;
  place.serve = true;
  return place;
}

}  // namespace

Result<std::optional<PlaceOptions>> placeOf(const BenchOptions& o, const Settings& settings,
                                            bool stored) {
  const std::optional<PlaceOptions> place = chosen(o, settings, stored);
  for (const std::string_view flag : kOfEtcd)
    if (o.has(flag) && !(place && meet::isEtcd(*place)))
      return badFlag(spelled(flag, '_'), "the workers do not meet at an etcd",
                     "give --etcd_endpoints, too");
  if (!place && o.rank)
    return badFlag("--rank", "all workers run here and get their ranks automatically",
                   "give --meet or --etcd_endpoints to meet workers of other machines");
  if (!place) return place;
  // Reports wrong options of the place before any measurement. Nothing is sent to it yet.
  VIADUCT_CHECK(meet::openGroupPlace(*place));
  return place;
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
