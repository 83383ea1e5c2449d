#include "tcp_floor_bare.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace viaduct::bench {

namespace {

void must(bool good, const char* what) {
  if (good) return;
  std::perror(what);
  std::exit(1);
}

void tune(int fd) {
  const int one = 1;
  must(::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) == 0, "TCP_NODELAY");
  if (::setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "cubic", 5) != 0)
    static_cast<void>(::setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4));
}

// A position in a list of blocks, which moves by byte counts.
class Cursor {
 public:
  explicit Cursor(const BlockList& blocks) : blocks_(blocks) {}
  bool done() const { return next_ == blocks_.size(); }
  msghdr gather(std::vector<iovec>& scratch) const {
    scratch.clear();
    for (std::size_t i = next_; i < blocks_.size() && scratch.size() < 1024; ++i)
      scratch.push_back({blocks_[i].at, blocks_[i].bytes});
    scratch.front().iov_base = blocks_[next_].at + offset_;
    scratch.front().iov_len -= offset_;
    msghdr message{};
    message.msg_iov = scratch.data();
    message.msg_iovlen = scratch.size();
    return message;
  }
  void advance(std::size_t bytes) {
    while (bytes > 0) {
      const std::size_t part = std::min(bytes, blocks_[next_].bytes - offset_);
      bytes -= part;
      offset_ += part;
      if (offset_ < blocks_[next_].bytes) continue;
      ++next_;
      offset_ = 0;
    }
  }
  bool begun() const { return next_ > 0 || offset_ > 0; }

 private:
  const BlockList& blocks_;
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
  must(::bind(listener.get(), raw, length) == 0 && ::listen(listener.get(), 1) == 0, "listen");
  must(::getsockname(listener.get(), raw, &length) == 0, "getsockname");
  BarePair out;
  out.a.reset(::socket(AF_INET, SOCK_STREAM, 0));
  must(::connect(out.a.get(), raw, length) == 0, "connect");
  out.b.reset(::accept(listener.get(), nullptr, nullptr));
  tune(out.a.get());
  tune(out.b.get());
  return out;
}

void bareSend(int fd, const BlockList& blocks, std::vector<iovec>& scratch) {
  for (Cursor cursor(blocks); !cursor.done();) {
    const msghdr message = cursor.gather(scratch);
    const ssize_t put = ::sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (put > 0) cursor.advance(static_cast<std::size_t>(put));
    must(put > 0 || errno == EAGAIN, "sendmsg");
  }
  char ack = 0;
  while (::recv(fd, &ack, 1, MSG_DONTWAIT) != 1) must(errno == EAGAIN, "recv");
}

bool bareReceive(int fd, const BlockList& blocks, std::vector<iovec>& scratch,
                 const std::function<bool()>& stop) {
  for (Cursor cursor(blocks); !cursor.done();) {
    msghdr message = cursor.gather(scratch);
    const ssize_t got = ::recvmsg(fd, &message, MSG_DONTWAIT);
    if (got > 0) cursor.advance(static_cast<std::size_t>(got));
    must(got > 0 || errno == EAGAIN, "recvmsg");
    if (got < 0 && !cursor.begun() && stop()) return false;
  }
  must(::send(fd, "a", 1, MSG_NOSIGNAL) == 1, "send");
  return true;
}

void barePing(int fd) {
  std::uint64_t word = 1;
  must(::send(fd, &word, sizeof(word), 0) == sizeof(word), "send");
  must(::recv(fd, &word, sizeof(word), MSG_WAITALL) == sizeof(word), "recv");
}

void barePong(int fd) {
  std::uint64_t word = 0;
  must(::recv(fd, &word, sizeof(word), MSG_WAITALL) == sizeof(word), "recv");
  must(::send(fd, &word, sizeof(word), 0) == sizeof(word), "send");
}

}  // namespace viaduct::bench
