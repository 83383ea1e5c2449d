// Meeting at an embedded server. Threads: any.
#pragma once

#include <viaduct/result.h>

#include <memory>

#include "meet/meeting.h"
#include "meet/place_options.h"

namespace viaduct::meet {

// Reads the options, and starts the server where they say so; goes to the network only when
// somebody joins, publishes or finds. Not across fork(): a child opens its own.
Result<std::unique_ptr<MeetingPlace>> openEmbedded(const PlaceOptions& options);

}  // namespace viaduct::meet
