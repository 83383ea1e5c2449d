#include "meet/place.h"

#include "meet/embedded/embedded.h"
#include "meet/etcd/etcd.h"

namespace viaduct::meet {
namespace {

PlaceKind kindOf(const PlaceOptions& options) {
  if (options.kind != PlaceKind::kByAddress) return options.kind;
  const bool url = options.where.starts_with("http://") || options.where.starts_with("https://");
  return url ? PlaceKind::kEtcd : PlaceKind::kEmbedded;
}

}  // namespace

Result<std::unique_ptr<MeetingPlace>> openMeetingPlace(const PlaceOptions& options) {
  return kindOf(options) == PlaceKind::kEtcd ? openEtcd(options) : openEmbedded(options);
}

}  // namespace viaduct::meet
