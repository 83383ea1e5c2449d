// Meeting at an embedded server. Threads: any.
#pragma once

#include <viaduct/result.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

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

// Where a server listens that all interfaces of this host lead to, over IPv4 and IPv6.
std::vector<std::string> everyInterface(std::uint16_t port);

}  // namespace viaduct::meet
