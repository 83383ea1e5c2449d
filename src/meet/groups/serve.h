// Starts the server of an embedded meeting place, if this host has its address. Threads: any.
#pragma once

#include <viaduct/result.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "meet/groups/server.h"
#include "meet/place_options.h"

namespace viaduct::meet {

// The address of an embedded place. Nothing: the options name a place of another kind.
std::optional<std::string> embeddedAddress(const PlaceOptions& options);

// Starts the server of an embedded place if its address is this host's. Null: the address is
// another host's, or may be, or the place is of another kind. Null also if another process listens
// there already, which is the server then.
Result<std::unique_ptr<EmbeddedServer>> serveIfHere(const PlaceOptions& options);

// The listen addresses for all interfaces of this host, over IPv4 and IPv6.
std::vector<std::string> everyInterface(std::uint16_t port);

}  // namespace viaduct::meet
