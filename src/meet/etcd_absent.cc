// Stands for openEtcd() until src/meet/etcd/ defines it: whoever does that takes this file away.
#include "meet/etcd/etcd.h"

namespace viaduct::meet {

Result<std::unique_ptr<MeetingPlace>> openEtcd(const PlaceOptions& options) {
  return Error{.code = Code::kUnsupported,
               .operation = "meeting place",
               .detail = options.where + ": etcd is not built in",
               .remedy = "give host:port of an embedded meeting place"};
}

}  // namespace viaduct::meet
