// Meeting at an embedded server. Threads: any.
#pragma once

#include <viaduct/result.h>

#include <memory>

#include "meet/embedded/server.h"
#include "meet/meeting.h"
#include "meet/place_options.h"

namespace viaduct::meet {

// Reads the options; goes to the network only when somebody joins, publishes or finds. Not across
// fork(): a child opens its own.
Result<std::unique_ptr<MeetingPlace>> openEmbedded(const PlaceOptions& options);

// Starts the server of that meeting place where its address is this host's. Null where the address
// is another host's, or where another process listens there already: that one is the server.
Result<std::unique_ptr<EmbeddedServer>> serveIfHere(const PlaceOptions& options);

}  // namespace viaduct::meet
