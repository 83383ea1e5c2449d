#include "meet/identity.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <sstream>

namespace viaduct::meet {
namespace {

std::string readLink(const char* path) {
  std::array<char, 128> text;
  const ssize_t got = ::readlink(path, text.data(), text.size());
  return got > 0 ? std::string(text.data(), static_cast<std::size_t>(got)) : std::string();
}

// Returns a process's start in ticks since the boot, or nothing without such a process. Its name
// may contain any characters, so fields are counted from the last ')': the start is the 20th after
// it.
std::string startOf(int pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string all;
  std::getline(file, all, '\0');  // also if the process ends meanwhile, where an iterator throws
  const std::size_t close = all.rfind(')');
  if (close == std::string::npos) return {};
  std::istringstream fields(all.substr(close + 1));
  std::string field;
  for (int i = 0; i < 20; ++i) fields >> field;
  return fields ? field : std::string();
}

// The facts that a process has to share with this one so that its pid is valid here.
std::string ownWorld() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  file >> boot;
  const std::string pids = readLink("/proc/self/ns/pid");
  if (boot.empty() || pids.empty()) return {};
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  return fmt::format("{} {} {} {}", boot, host.data(), pids, readLink("/proc/self/ns/time"));
}

}  // namespace

const std::string& ownIdentity() {
  static const std::string identity = [] {
    const std::string world = ownWorld();
    const std::string start = startOf(::getpid());
    if (world.empty() || start.empty()) return std::string();
    return fmt::format("{}|{} {}", world, ::getpid(), start);
  }();
  return identity;
}

bool isProvablyDead(const std::string& identity) {
  const std::size_t bar = identity.rfind('|');
  if (bar == std::string::npos || ownIdentity().empty()) return false;
  if (identity.substr(0, bar) != ownWorld()) return false;
  int pid = 0;
  const char* const begin = identity.data() + bar + 1;
  const char* const end = identity.data() + identity.size();
  const auto parsed = std::from_chars(begin, end, pid);
  if (parsed.ec != std::errc() || pid <= 0 || parsed.ptr == end || *parsed.ptr != ' ') return false;
  if (::kill(pid, 0) != 0) return errno == ESRCH;
  const std::string start = startOf(pid);
  return !start.empty() && start != std::string(parsed.ptr + 1, end);
}

}  // namespace viaduct::meet
