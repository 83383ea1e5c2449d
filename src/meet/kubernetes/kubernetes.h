// Opens a meeting place at the API server of a Kubernetes cluster: each published name is a Lease.
// Threads: any.
#pragma once

#include <viaduct/result.h>

#include <chrono>
#include <memory>

#include "meet/kubernetes/site.h"
#include "meet/meeting.h"
#include "meet/place_options.h"

namespace viaduct::meet {

// Finds the API server and the credentials. Connects only in publish() and find(). A name's Lease
// has the longer of `least_lease` and the detection time.
Result<std::unique_ptr<MeetingPlace>> openKubernetes(
    const PlaceOptions& options, std::chrono::seconds least_lease = kubernetes::kLeaseTime);

}  // namespace viaduct::meet
