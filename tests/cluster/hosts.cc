#include "cluster/hosts.h"

#include <cstdlib>
#include <fstream>

#include "process/words.h"

namespace viaduct::testing {

// The shell prints "made" once namespaces and mounts are ready. The constructor sends nothing,
// because a send to an `unshare` that was refused and has exited fails the test. `cat` exits with
// the test. /proc, /dev/shm and /sys are mounted anew, because the old mounts show this host's.
Host::Host(const std::string& name)
    : holder_({"unshare", "--net", "--uts", "--ipc", "--mount", "--pid", "--fork", "--kill-child",
               "--mount-proc", "--", "sh", "-c",
               "hostname \"$0\" && mount -t tmpfs shm /dev/shm && mount -t sysfs sys /sys && "
               "ip link set lo up && echo made && exec cat",
               name}),
      made_(holder_.answer() == "made") {}

bool Host::run(const std::string& command) const {
  const std::string there =
      "nsenter --net=/proc/" + std::to_string(pid()) + "/ns/net sh -c '" + command + "'";
  return std::system(there.c_str()) == 0;  // the command is part of a test, no outside text
}

std::uint64_t Host::count(const std::string& interface, std::size_t column) const {
  std::ifstream table("/proc/" + std::to_string(pid()) + "/net/dev");
  for (std::string line; std::getline(table, line);) {
    const auto at = line.find(interface + ":");
    if (at == std::string::npos) continue;
    // Eight columns for received traffic, bytes first; then eight columns for sent traffic.
    const auto columns = words(line.substr(at + interface.size() + 1));
    return columns.size() > column ? std::stoull(columns[column]) : 0;
  }
  return 0;
}

bool Host::waitUntil(const std::string& shell_condition) const {
  return run("i=0; until " + shell_condition +
             "; do i=$((i+1)); [ $i -lt 1000 ] || exit 1; sleep 0.01; done");
}

bool Host::carries(const std::string& interface) const {
  return waitUntil("ip -o link show " + interface + " | grep -q \"state UP\"");
}

bool Host::losesCarrier(const std::string& interface) const {
  return waitUntil("ip -o link show " + interface + " | grep -qv \"state UP\"");
}

bool Host::limit(const std::string& interface, unsigned megabits) const {
  return tc("qdisc replace dev " + interface + " root tbf rate " + std::to_string(megabits) +
            "mbit burst 128kb latency 50ms");
}

bool join(const Host& a, const Host& b, const std::string& link, const std::string& address_a,
          const std::string& address_b) {
  const auto up = [&](const Host& host, const std::string& address) {
    // nodad makes an IPv6 address usable at once.
    const std::string nodad = address.find(':') == std::string::npos ? "" : " nodad";
    return host.ip("address add " + address + " dev " + link + nodad) &&
           host.ip("link set " + link + " up");
  };
  return a.ip("link add " + link + " type veth peer name " + link + " netns " +
              std::to_string(b.pid())) &&
         up(a, address_a) && up(b, address_b);
}

Desk::Desk(std::size_t hosts, std::size_t links)
    : links_(links), switch_(std::make_unique<Host>("switch")), made_(switch_->made()) {
  for (std::size_t link = 0; made_ && link < links; ++link) {
    const std::string bridge = "br" + std::to_string(link);
    made_ = switch_->ip("link add " + bridge + " type bridge && ip link set " + bridge + " up");
  }
  for (std::size_t host = 0; made_ && host < hosts; ++host) {
    hosts_.push_back(std::make_unique<Host>("host" + std::to_string(host)));
    made_ = hosts_.back()->made();
    for (std::size_t link = 0; made_ && link < links; ++link) made_ = connect(host, link);
  }
}

std::string Desk::port(std::size_t host, std::size_t link) {
  return "h" + std::to_string(host) + "l" + std::to_string(link);
}

bool Desk::connect(std::size_t host, std::size_t link) const {
  const std::string there = port(host, link), here = rail(link);
  return hosts_[host]->ip("link add " + here + " type veth peer name " + there + " netns " +
                          std::to_string(switch_->pid()) + " && ip address add " +
                          address(host, link) + "/24 dev " + here + " && ip link set " + here +
                          " up") &&
         switch_->ip("link set " + there + " master br" + std::to_string(link) + " up") &&
         hosts_[host]->carries(here);
}

std::string Desk::address(std::size_t host, std::size_t link) {
  return "10.77." + std::to_string(link) + "." + std::to_string(host + 1);
}

std::string Desk::rails(std::size_t host) const {
  std::string out = address(host, 0);
  for (std::size_t link = 1; link < links_; ++link) out += "," + address(host, link);
  return out;
}

std::string Desk::listen(std::size_t host) const {
  std::string out = address(host, 0) + ":0";
  for (std::size_t link = 1; link < links_; ++link) out += "," + address(host, link) + ":0";
  return out;
}

bool Desk::limit(unsigned megabits) const {
  for (std::size_t host = 0; host < size(); ++host)
    for (std::size_t link = 0; link < links_; ++link)
      if (!hosts_[host]->limit(rail(link), megabits) || !switch_->limit(port(host, link), megabits))
        return false;
  return true;
}

bool Desk::cut(std::size_t host, std::size_t link) const {
  return switch_->ip("link set " + port(host, link) + " down");
}

// A port without a bridge has a carrier, but its frames reach nobody.
bool Desk::drop(std::size_t host, std::size_t link) const {
  return switch_->ip("link set " + port(host, link) + " nomaster");
}

// Sends frames to an address that no port has, so that they are dropped.
bool Desk::mute(std::size_t host, std::size_t link) const {
  for (std::size_t other = 0; other < hosts_.size(); ++other)
    if (other != host &&
        !hosts_[host]->ip("neigh replace " + address(other, link) +
                          " lladdr 02:00:00:00:00:01 nud permanent dev " + rail(link)))
      return false;
  return true;
}

bool Desk::unmute(std::size_t host, std::size_t link) const {
  for (std::size_t other = 0; other < hosts_.size(); ++other)
    if (other != host &&
        !hosts_[host]->ip("neigh del " + address(other, link) + " dev " + rail(link)))
      return false;
  return true;
}

bool Desk::heal(std::size_t host, std::size_t link) const {
  return switch_->ip("link set " + port(host, link) + " master br" + std::to_string(link) + " up");
}

// One transaction. Changes of one port after another take long on a busy machine, so that one link
// would be silent alone.
bool Desk::dropAll() const {
  return switch_->run(
      "nft \"add table bridge silent { "
      "chain f { type filter hook forward priority 0; policy drop; }; }\"");
}

bool Desk::healAll() const { return switch_->run("nft delete table bridge silent"); }

}  // namespace viaduct::testing
