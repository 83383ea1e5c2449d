#include "meet/place.h"

#include "meet/embedded/embedded.h"
#include "meet/etcd/etcd.h"
#include "meet/kubernetes/kubernetes.h"

namespace viaduct::meet {

bool isEtcd(const PlaceOptions& options) {
  if (options.kind != PlaceKind::kByAddress) return options.kind == PlaceKind::kEtcd;
  return options.where.starts_with("http://") || options.where.starts_with("https://");
}

Result<std::unique_ptr<MeetingPlace>> openMeetingPlace(const PlaceOptions& options) {
  if (options.where.starts_with("kubernetes:")) return openKubernetes(options);
  return isEtcd(options) ? openEtcd(options) : openEmbedded(options);
}

}  // namespace viaduct::meet
