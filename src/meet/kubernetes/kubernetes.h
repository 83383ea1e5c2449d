// Opens a meeting place at the API server of a Kubernetes cluster: each published name is a Lease.
// Threads: any.
#pragma once

#include <viaduct/result.h>

#include <chrono>
#include <memory>

#include "meet/meeting.h"
#include "meet/place_options.h"

namespace viaduct::meet::kubernetes {

// Finds the API server and the credentials. Connects only in publish() and find(). A Lease lasts
// `least_lease` (15 s), or the detection time if that is longer.
Result<std::unique_ptr<MeetingPlace>> open(const PlaceOptions& options);
Result<std::unique_ptr<MeetingPlace>> open(const PlaceOptions& options,
                                           std::chrono::seconds least_lease);

}  // namespace viaduct::meet::kubernetes
