#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>

#include "backends/tcp/socket.h"

namespace viaduct::tcp {
namespace {

// The lesser of two figures of which 0 means unknown.
template <class T>
T lesser(T a, T b) {
  return a == T{} || (b != T{} && b < a) ? b : a;
}

}  // namespace

// An older kernel fills less of the structure. The rest stays 0, which means unknown.
void add(SocketStatistics& rail, int fd) {
  tcp_info info{};
  socklen_t length = sizeof info;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return;
  using std::chrono::microseconds;
  ++rail.sockets;
  rail.sent_bytes += info.tcpi_bytes_acked;
  rail.received_bytes += info.tcpi_bytes_received;
  rail.sent_segments += info.tcpi_data_segs_out;
  // A busy receiver acknowledges late, and TCP then repeats what was not lost. The receiver reports
  // what it had already.
  rail.repeated_segments +=
      info.tcpi_total_retrans - std::min(info.tcpi_total_retrans, info.tcpi_dsack_dups);
  rail.busy += microseconds(info.tcpi_busy_time);
  rail.send_limited += microseconds(info.tcpi_sndbuf_limited);
  rail.window_limited += microseconds(info.tcpi_rwnd_limited);
  if (info.tcpi_bytes_acked == 0) return;
  rail.round_trip =
      lesser<std::chrono::nanoseconds>(rail.round_trip, microseconds(info.tcpi_min_rtt));
  rail.segment_bytes = lesser(rail.segment_bytes, std::uint32_t{info.tcpi_snd_mss});
  rail.path_mtu = lesser(rail.path_mtu, std::uint32_t{info.tcpi_pmtu});
}

}  // namespace viaduct::tcp
