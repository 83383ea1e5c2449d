#include "base/read_fd.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace viaduct::base {

namespace {

template <std::size_t kPart, class IsEnough>
int readUntil(IsEnough is_enough, int fd, std::string& into, std::size_t most) {
  std::array<char, kPart> part;
  while (into.size() <= most && !is_enough()) {
    const ssize_t got = ::read(fd, part.data(), std::min(part.size(), most - into.size() + 1));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) break;
    into.append(part.data(), static_cast<std::size_t>(got));
  }
  return 0;
}

}  // namespace

int readAll(int fd, std::string& into, std::size_t most) {
  return readUntil<65536>([] { return false; }, fd, into, most);
}

int readLine(int fd, std::string& into, std::size_t most) {
  // Asks for 256 bytes at a time: for a file in /proc/sys, the kernel clears a buffer of that size.
  return readUntil<256>([&] { return into.find('\n') != std::string::npos; }, fd, into, most);
}

int writeAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t done = ::write(fd, bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return errno;
    bytes.remove_prefix(static_cast<std::size_t>(done));
  }
  return 0;
}

}  // namespace viaduct::base
