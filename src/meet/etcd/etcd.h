// Opens a meeting place at an etcd cluster, version 3, through its JSON gateway. Threads: any.
#pragma once

#include <viaduct/result.h>

#include <memory>

#include "meet/meeting.h"
#include "meet/place_options.h"

namespace viaduct::meet {

// Reads the options. Connects only in join(), publish() and find().
Result<std::unique_ptr<MeetingPlace>> openEtcd(const PlaceOptions& options);

}  // namespace viaduct::meet
