// The meeting place that options name. Threads: any.
#pragma once

#include <viaduct/result.h>

#include <memory>

#include "meet/meeting.h"
#include "meet/place_options.h"

namespace viaduct::meet {

// Refuses what cannot be right at once; nobody is asked yet. Not across fork().
Result<std::unique_ptr<MeetingPlace>> openMeetingPlace(const PlaceOptions& options);

bool isEtcd(const PlaceOptions& options);

}  // namespace viaduct::meet
