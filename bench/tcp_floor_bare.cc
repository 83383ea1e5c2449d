#include "tcp_floor_bare.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "harness/program.h"

namespace viaduct::bench {
namespace {

void tune(int fd) {
  const int one = 1;
  must(::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)), "TCP_NODELAY");
  if (::setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "cubic", 5) != 0)
    static_cast<void>(::setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4));
}

// A position in a list of blocks, which moves by byte counts.
class Cursor {
 public:
  explicit Cursor(std::span<const Extent> blocks) : blocks_(blocks) {}
  bool done() const { return next_ == blocks_.size(); }
  msghdr gather(std::vector<iovec>& scratch) const {
    scratch.clear();
    for (std::size_t i = next_; i < blocks_.size() && scratch.size() < 1024; ++i)
      scratch.push_back(iovecOf(blocks_[i], 0));
    scratch.front() = iovecOf(blocks_[next_], offset_);
    msghdr message{};
    message.msg_iov = scratch.data();
    message.msg_iovlen = scratch.size();
    return message;
  }
  void advance(std::size_t bytes) {
    while (bytes > 0) {
      const std::size_t part = std::min<std::size_t>(bytes, blocks_[next_].bytes - offset_);
      bytes -= part;
      offset_ += part;
      if (offset_ < blocks_[next_].bytes) continue;
      ++next_;
      offset_ = 0;
    }
  }
  bool begun() const { return next_ > 0 || offset_ > 0; }

 private:
  static iovec iovecOf(const Extent& block, std::size_t offset) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): an extent's address is a number
    return {reinterpret_cast<void*>(block.address + offset), block.bytes - offset};
  }
  std::span<const Extent> blocks_;
  std::size_t next_ = 0, offset_ = 0;
};

}  // namespace

BarePair BarePair::make() {
  const base::Fd listener(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* raw = reinterpret_cast<sockaddr*>(&at);
  socklen_t length = sizeof(at);
  must(::bind(listener.get(), raw, length), "bind");
  must(::listen(listener.get(), 1), "listen");
  must(::getsockname(listener.get(), raw, &length), "getsockname");
  BarePair out;
  out.a.reset(::socket(AF_INET, SOCK_STREAM, 0));
  must(::connect(out.a.get(), raw, length), "connect");
  out.b.reset(::accept(listener.get(), nullptr, nullptr));
  tune(out.a.get());
  tune(out.b.get());
  return out;
}

void bareSend(int fd, std::span<const Extent> blocks, std::vector<iovec>& scratch) {
  for (Cursor cursor(blocks); !cursor.done();) {
    const msghdr message = cursor.gather(scratch);
    const ssize_t put = ::sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (put > 0) cursor.advance(static_cast<std::size_t>(put));
    if (put <= 0 && errno != EAGAIN) dieOf("sendmsg");
  }
  char ack = 0;
  while (::recv(fd, &ack, 1, MSG_DONTWAIT) != 1)
    if (errno != EAGAIN) dieOf("recv");
}

bool bareReceive(int fd, std::span<const Extent> blocks, std::vector<iovec>& scratch,
                 const std::function<bool()>& stop) {
  for (Cursor cursor(blocks); !cursor.done();) {
    msghdr message = cursor.gather(scratch);
    const ssize_t got = ::recvmsg(fd, &message, MSG_DONTWAIT);
    if (got > 0) cursor.advance(static_cast<std::size_t>(got));
    if (got <= 0 && errno != EAGAIN) dieOf("recvmsg");
    if (got < 0 && !cursor.begun() && stop()) return false;
  }
  must(::send(fd, "a", 1, MSG_NOSIGNAL), "send");
  return true;
}

void barePing(int fd) {
  std::uint64_t word = 1;
  must(::send(fd, &word, sizeof(word), 0), "send");
  must(::recv(fd, &word, sizeof(word), MSG_WAITALL), "recv");
}

void barePong(int fd) {
  std::uint64_t word = 0;
  must(::recv(fd, &word, sizeof(word), MSG_WAITALL), "recv");
  must(::send(fd, &word, sizeof(word), 0), "send");
}

}  // namespace viaduct::bench
