#include "host/sysfs.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>

#include "base/fd.h"
#include "base/sizes.h"
#include "base/text.h"

namespace viaduct::host {

// Uses no stream, because the first stream and the first directory iterator of a process cost a
// quarter of a millisecond each. Every opening of an agent would pay that: docs/measured/agent.md.
std::string firstLine(const std::string& path) {
  const base::Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string line;
  std::array<char, 256> part;
  while (file && line.find('\n') == std::string::npos) {
    const ssize_t got = ::read(file.get(), part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    line.append(part.data(), static_cast<std::size_t>(got));
  }
  return std::string(base::trimmed(std::string_view(line).substr(0, line.find('\n'))));
}

std::optional<std::uint64_t> numberIn(const std::string& path) {
  const auto number = base::parseCount(firstLine(path));
  return number ? std::optional(*number) : std::nullopt;
}

std::string valueOf(const std::string& path, std::string_view key) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    const auto colon = line.find(':');
    if (colon != std::string::npos && base::trimmed(std::string_view(line).substr(0, colon)) == key)
      return std::string(base::trimmed(std::string_view(line).substr(colon + 1)));
  }
  return {};
}

bool exists(const std::string& path) {
  std::error_code none;
  return std::filesystem::exists(path, none);
}

std::vector<std::string> namesIn(const std::string& folder) {
  std::vector<std::string> out;
  DIR* const open = ::opendir(folder.c_str());
  if (open == nullptr) return out;
  while (const dirent* const entry = ::readdir(open)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") out.emplace_back(name);
  }
  ::closedir(open);
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<InterfaceBytes> interfaceBytes(const std::string& root) {
  std::vector<InterfaceBytes> out;
  std::ifstream in(root + "/proc/net/dev");
  for (std::string line; std::getline(in, line);) {
    // A line is "  eth0: 1234 ...": eight figures of received traffic, then eight of sent traffic.
    // The two header lines have bars.
    const auto colon = line.find(':');
    if (colon == std::string::npos || line.find('|') != std::string::npos) continue;
    InterfaceBytes found;
    std::istringstream(line.substr(0, colon)) >> found.name;
    std::istringstream figures(line.substr(colon + 1));
    std::uint64_t skipped = 0;
    figures >> found.received;
    for (int i = 0; i < 7; ++i) figures >> skipped;
    if (figures >> found.sent) out.push_back(std::move(found));
  }
  return out;
}

std::vector<RdmaPort> rdmaPorts(const std::string& root) {
  std::vector<RdmaPort> out;
  const std::string top = root + "/sys/class/infiniband/";
  for (const std::string& device : namesIn(top)) {
    const std::string ports = top + device + "/ports/";
    for (const std::string& port : namesIn(ports))
      out.push_back(
          {device, ports + port, port == "1" ? device : fmt::format("{}:{}", device, port)});
  }
  return out;
}

std::vector<std::string> cxiNics(const std::string& root) {
  return namesIn(root + "/sys/class/cxi");
}

}  // namespace viaduct::host
