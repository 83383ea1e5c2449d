#include "base/net/hearing.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace viaduct::base {

Hearing hearingOf(int socket) {
  tcp_info info{};
  socklen_t length = sizeof info;
  if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return {};
  return {.awaited = info.tcpi_unacked > 0,
          .repeats = info.tcpi_retransmits > 0,
          .acknowledged = info.tcpi_bytes_acked,
          .since = std::chrono::milliseconds(info.tcpi_last_ack_recv),
          .round_trip = std::chrono::microseconds(info.tcpi_rtt)};
}

}  // namespace viaduct::base
