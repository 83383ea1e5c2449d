// Facts about the backend tcp. Threads: constants.
#pragma once

#include <viaduct/backend.h>

#include <array>

#include "core/setting_row.h"

namespace viaduct::tcp {

// The limit for Settings::sockets. It is also the limit for all sockets of a link.
inline constexpr std::uint64_t kMostSockets = 64;

inline constexpr std::array kSettings{
    core::countSetting<&Settings::sockets, 1, kMostSockets>(
        "VIADUCT_SOCKETS", "1", "TCP sockets per rail and peer, 1 to 64."),
    core::settingRow<&Settings::privacy, core::parsePrivacy, core::showPrivacy>(
        "VIADUCT_PRIVACY", "auto",
        "Protection of data over tcp: off, frames, integrity, encrypted or required "
        "(docs/security.md). "
        "required also refuses a peer that has set off. Otherwise the stronger wish holds, but off "
        "by "
        "hand is always off. auto: frames between hosts, off on one host."),
    core::ofHost(core::settingRow<&Settings::tcp_ports, core::parsePorts, core::showPorts>(
        "VIADUCT_TCP_PORTS", "",
        "Ports on which the tcp backend listens for data, such as 7100 or 7100-7199. Open "
        "them in firewalls. Each agent of a host takes one. By default the system chooses.")),
};

inline constexpr BackendFacts kFacts{
    .name = "tcp",
    .realm = [](std::string_view) { return Realm::kSockets; },
    .usual = true,
    .settings = kSettings,
};

}  // namespace viaduct::tcp
