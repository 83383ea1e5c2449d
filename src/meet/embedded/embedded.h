// Opens a meeting place at an embedded server. Threads: any.
#pragma once

#include <viaduct/result.h>

#include <memory>

#include "meet/meeting.h"
#include "meet/place_options.h"

namespace viaduct::meet {

// Reads the options. Connects only in publish() and find(). Not across fork(): a child opens its
// own.
Result<std::unique_ptr<MeetingPlace>> openEmbedded(const PlaceOptions& options);

}  // namespace viaduct::meet
