// Opens the meeting place that the options describe. Threads: any.
#pragma once

#include <viaduct/result.h>

#include <memory>

#include "meet/meeting.h"
#include "meet/place_options.h"

namespace viaduct::meet {

// Fails at once for malformed options, and connects to no server yet. A child of fork() opens its
// own place.
Result<std::unique_ptr<MeetingPlace>> openMeetingPlace(const PlaceOptions& options);

bool isEtcd(const PlaceOptions& options);

}  // namespace viaduct::meet
