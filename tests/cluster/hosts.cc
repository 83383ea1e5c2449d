#include "cluster/hosts.h"

#include <cstdlib>
#include <fstream>

#include "process/words.h"

namespace viaduct::testing {

// cat answers what it is told once it runs, and ends with us.
Host::Host()
    : holder_({"unshare", "--net", "--", "cat"}),
      made_(holder_.ask("here").value_or("") == "here" && ip("link set lo up")) {}

bool Host::run(const std::string& command) const {
  const std::string there = "nsenter --net=/proc/" + std::to_string(pid()) + "/ns/net " + command;
  return std::system(there.c_str()) == 0;  // NOLINT(bugprone-command-processor): our own words
}

std::uint64_t Host::sent(const std::string& interface) const {
  std::ifstream table("/proc/" + std::to_string(pid()) + "/net/dev");
  for (std::string line; std::getline(table, line);) {
    const auto at = line.find(interface + ":");
    if (at == std::string::npos) continue;
    // Eight columns of what was received, then the bytes sent.
    const auto columns = words(line.substr(at + interface.size() + 1));
    return columns.size() > 8 ? std::stoull(columns[8]) : 0;
  }
  return 0;
}

bool join(const Host& a, const Host& b, const std::string& link, const std::string& address_a,
          const std::string& address_b) {
  const auto up = [&](const Host& host, const std::string& address) {
    // nodad: an IPv6 address is usable at once.
    const std::string nodad = address.find(':') == std::string::npos ? "" : " nodad";
    return host.ip("address add " + address + " dev " + link + nodad) &&
           host.ip("link set " + link + " up");
  };
  return a.ip("link add " + link + " type veth peer name " + link + " netns " +
              std::to_string(b.pid())) &&
         up(a, address_a) && up(b, address_b);
}

}  // namespace viaduct::testing
