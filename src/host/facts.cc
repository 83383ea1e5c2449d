#include "host/facts.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <thread>

#include "base/sizes.h"
#include "host/sysfs.h"

namespace viaduct::host {
namespace {

// An arm64 kernel gives numbers for its cores and no name: Grace has implementer 0x41, part 0xd4f.
std::string cpuModel(const std::string& root) {
  const std::string file = root + "/proc/cpuinfo";
  std::string name = valueOf(file, "model name");
  const std::string part = valueOf(file, "CPU part");
  if (!name.empty() || part.empty()) return name;
  return fmt::format("arm64, implementer {}, part {}", valueOf(file, "CPU implementer"), part);
}

std::uint64_t memoryTotal(const std::string& root) {
  // In "16308788 kB", kB means 1024 bytes.
  const std::string text = valueOf(root + "/proc/meminfo", "MemTotal");
  const auto kibibytes = base::parseCount(text.substr(0, text.find(' ')));
  return kibibytes ? *kibibytes * 1024 : 0;
}

std::uint32_t usableCores() {
  // If there are more processors than a cpu_set_t holds, the call fails, and all of them count.
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof(set), &set) == 0)
    return static_cast<std::uint32_t>(CPU_COUNT(&set));
  return std::thread::hardware_concurrency();
}

std::string addressText(const sockaddr* address) {
  if (address == nullptr) return {};
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address->sa_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, address, sizeof(v4));
    if (::inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size()) != nullptr) return text.data();
  }
  if (address->sa_family == AF_INET6) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, address, sizeof(v6));
    if (::inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), text.size()) != nullptr)
      return text.data();
  }
  return {};
}

// The rate of a link with a device behind it. Bridges and virtual pairs report made-up rates, so
// they give 0.
std::uint64_t linkRate(const std::string& root, const std::string& name) {
  const std::string folder = root + "/sys/class/net/" + name;
  return exists(folder + "/device") ? numberIn(folder + "/speed").value_or(0) : 0;  // "-1": none
}

std::vector<Interface> interfaces(const std::string& root) {
  ifaddrs* raw = nullptr;
  if (::getifaddrs(&raw) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> all(raw, &::freeifaddrs);
  std::vector<Interface> out;
  for (const ifaddrs* at = all.get(); at != nullptr; at = at->ifa_next) {
    auto known = std::find_if(out.begin(), out.end(),
                              [&](const Interface& i) { return i.name == at->ifa_name; });
    if (known == out.end()) {
      out.push_back({.name = at->ifa_name,
                     .up = (at->ifa_flags & IFF_UP) != 0,
                     .mbit_per_s = linkRate(root, at->ifa_name)});
      known = out.end() - 1;
    }
    if (std::string text = addressText(at->ifa_addr); !text.empty())
      known->addresses.push_back(std::move(text));
  }
  return out;
}

}  // namespace

std::string bootId(const std::string& root) {
  return firstLine(root + "/proc/sys/kernel/random/boot_id");
}

std::string hostName() {
  utsname names{};
  return ::uname(&names) == 0 ? names.nodename : "";
}

Facts facts(const std::string& root) {
  Facts out;
  out.boot_id = bootId(root);
  out.cpu_model = cpuModel(root);
  out.memory = memoryTotal(root);
  out.cores = usableCores();
  out.interfaces = interfaces(root);
  out.hostname = hostName();
  utsname names{};
  if (::uname(&names) == 0) out.kernel = names.release;
  return out;
}

}  // namespace viaduct::host
