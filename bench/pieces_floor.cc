// The floor of small pieces over tcp: plain sockets send pieces from random places of one process
// to random places of another, beside pieces in sequence and larger ones. With prefetching, each
// end first asks the processor for the first line of each piece: docs/measured/kv.md.
//   pieces_floor [ROUNDS]
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>

#include "base/prefetch.h"
#include "harness/agents.h"
#include "tcp_floor_bare.h"

namespace {

using namespace viaduct;
using namespace viaduct::bench;

constexpr std::size_t kRegion = std::size_t{1} << 30U, kMoved = std::size_t{128} << 20U;
constexpr std::size_t kPiecesAtOnce = 512;

struct Workload {
  const char* name;
  std::size_t bytes;
  bool random, prefetched;
  Samples gb_per_s = {};
};
std::array workloads{Workload{"1 MiB, random", 1 << 20, true, false},
                     Workload{"4 KiB, in sequence", 4096, false, false},
                     Workload{"4 KiB, random", 4096, true, false},
                     Workload{"4 KiB, random, prefetched", 4096, true, true},
                     Workload{"32 KiB, random", 32768, true, false},
                     Workload{"32 KiB, random, prefetched", 32768, true, true}};

// Memory in pages of 4 KiB that has been touched.
std::byte* region() {
  std::byte* const at = mapped(kRegion, MAP_PRIVATE);
  ::madvise(at, kRegion, MADV_NOHUGEPAGE);
  std::memset(at, 1, kRegion);
  return at;
}

std::vector<iovec> piecesOf(const Workload& workload, std::byte* base, unsigned seed) {
  Indices places(kRegion / workload.bytes);
  std::iota(places.begin(), places.end(), 0);
  if (workload.random) shuffle(places, seed);
  std::vector<iovec> out;
  for (std::size_t i = 0; i < kMoved / workload.bytes; ++i)
    out.push_back({base + places[i] * workload.bytes, workload.bytes});
  return out;
}

// Calls `move` with at most kPiecesAtOnce pieces until all bytes have moved.
template <class Move>
void moveAll(std::vector<iovec> pieces, bool prefetched, Move move) {
  for (std::size_t next = 0, asked = 0; next < pieces.size();) {
    const std::size_t end = std::min(next + kPiecesAtOnce, pieces.size());
    for (; prefetched && asked < end; ++asked) base::willWrite(pieces[asked].iov_base);
    msghdr message{};
    message.msg_iov = &pieces[next];
    message.msg_iovlen = end - next;
    ssize_t moved = move(message);
    if (moved <= 0) die("the socket is broken");
    for (; moved > 0; ++next) {
      const auto part =
          std::min<std::size_t>(static_cast<std::size_t>(moved), pieces[next].iov_len);
      moved -= static_cast<ssize_t>(part);
      pieces[next].iov_len -= part;
      pieces[next].iov_base = static_cast<std::byte*>(pieces[next].iov_base) + part;
      if (pieces[next].iov_len != 0) break;
    }
  }
}

void receive(int socket, int rounds) {
  std::byte* const memory = region();
  inTurns({rounds}, workloads, [&](const Workload& workload, int round) {
    moveAll(piecesOf(workload, memory, 2 * static_cast<unsigned>(round)), workload.prefetched,
            [&](msghdr& message) { return ::recvmsg(socket, &message, 0); });
    must(::send(socket, "a", 1, MSG_NOSIGNAL), "send");
  });
}

// Gigabytes a second.
double send(int socket, const Workload& workload, std::byte* memory, unsigned seed) {
  const auto pieces = piecesOf(workload, memory, seed);
  return static_cast<double>(kMoved) / 1e9 / secondsOf([&] {
           moveAll(pieces, workload.prefetched,
                   [&](msghdr& message) { return ::sendmsg(socket, &message, MSG_NOSIGNAL); });
           char ack = 0;
           if (::recv(socket, &ack, 1, MSG_WAITALL) != 1) dieOf("recv");
         });
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments given(argc, argv, "pieces_floor [ROUNDS]");
  const int rounds = given.number(0, 15);
  BarePair sockets = BarePair::make();
  const Child child([&](Channel&) { receive(sockets.b.get(), rounds); });
  std::byte* const memory = region();
  inTurns({rounds}, workloads, [&](Workload& workload, int round) {
    workload.gb_per_s.add(
        send(sockets.a.get(), workload, memory, 2 * static_cast<unsigned>(round) + 1));
  });
  Table table({words("", 28), figure("GB/s", 2)});
  for (const Workload& workload : workloads) table.row(workload.name, workload.gb_per_s);
}
