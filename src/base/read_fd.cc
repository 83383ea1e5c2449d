#include "base/read_fd.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace viaduct::base {

int readAll(int fd, std::string& into, std::size_t most) {
  std::array<char, 65536> part;
  while (into.size() <= most) {
    const ssize_t got = ::read(fd, part.data(), std::min(part.size(), most - into.size() + 1));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) break;
    into.append(part.data(), static_cast<std::size_t>(got));
  }
  return 0;
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
