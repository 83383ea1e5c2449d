// Starts the server of an embedded meeting place, if this host has its address. Threads: any.
#pragma once

#include <viaduct/result.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "meet/groups/server.h"
#include "meet/place_options.h"

namespace viaduct::meet {

// Starts the server of that meeting place if its address is this host's. Null: the address is
// another host's, or another process listens there already, which is the server then.
Result<std::unique_ptr<EmbeddedServer>> serveIfHere(const PlaceOptions& options);

// The listen addresses for all interfaces of this host, over IPv4 and IPv6.
std::vector<std::string> everyInterface(std::uint16_t port);

}  // namespace viaduct::meet
