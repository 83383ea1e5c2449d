// Many connections to one address that never send a byte. Prints "ok COUNT" once all are open. In a
// flood, each connection that is closed connects again. The process ends with its stdin.
//   strangers HOST:PORT|unix:@NAME COUNT idle|flood
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/net/address.h"

namespace {

using namespace viaduct;

constexpr rlim_t kOwnFiles = 32;

// The number of connections, limited by the descriptors of this process.
std::size_t atMost(std::size_t count) {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  return std::min<std::size_t>(count, files.rlim_cur - kOwnFiles);
}

Result<base::SocketAddress> addressOf(std::string_view text) {
  constexpr std::string_view kUnix = "unix:@";
  if (text.starts_with(kUnix)) return base::unixAddress(text.substr(kUnix.size()));
  VIADUCT_TRY(const auto where, base::parseHostPort(text));
  VIADUCT_TRY(const auto all, base::resolve(where));
  return all.front();
}

base::Fd connectTo(const base::SocketAddress& to) {
  base::Fd socket(::socket(to.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::connect(socket.get(), to.get(), to.size) != 0) socket.reset();
  return socket;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const auto to = addressOf(argv[1]);
  if (!to) return 2;
  const bool flood = std::string_view(argv[3]) == "flood";
  std::vector<base::Fd> strangers(atMost(std::stoul(argv[2])));
  for (base::Fd& stranger : strangers) stranger = connectTo(*to);
  std::cout << "ok " << strangers.size() << std::endl;
  for (;;) {
    std::vector<pollfd> waits{{.fd = 0, .events = POLLIN, .revents = 0}};
    for (const base::Fd& stranger : strangers)
      waits.push_back({.fd = flood ? stranger.get() : -1, .events = POLLIN, .revents = 0});
    if (::poll(waits.data(), waits.size(), -1) < 0 || waits[0].revents != 0) return 0;
    for (std::size_t i = 0; i < strangers.size(); ++i)
      if (waits[i + 1].revents != 0) strangers[i] = connectTo(*to);
  }
}
