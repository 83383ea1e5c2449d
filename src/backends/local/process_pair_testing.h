// Two processes, each with a local backend and a link to the other over a Unix socket pair. They do
// as much of an agent's work as these tests need. Threads: one per process.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "backends/local/local_backend.h"
#include "backends/local/local_message.h"
#include "base/bytes.h"
#include "core/backend.h"
#include "core/sink_testing.h"
#include "support/link_pair.h"

namespace viaduct::local::testing {

// One end of the pair. `pid`: the other process; 0 as if it were in another PID namespace. `raw`:
// makes no link, and keeps the received messages in `letters`.
class Station final : public core::LinkHost {
 public:
  Station(int socket, int pid, Settings settings, bool raw = false)
      : socket_(socket), settings_(std::move(settings)) {
    poller_ = std::move(*base::Poller::open());
    backend_ = std::move(*open({settings_, *poller_}));
    core::LinkSeed seed;
    seed.peer = "other";
    seed.epoch = 1;
    seed.same_host = seed.unix_socket = true;
    seed.pid = pid;
    if (!raw) link_ = backend_->link(std::move(seed), *this);
  }
  ~Station() override {
    if (link_) link_->close(done);
    link_.reset();
  }
  Station(const Station&) = delete;
  Station& operator=(const Station&) = delete;

  Status send(std::span<const std::byte> message, std::span<const int> fds = {}) override {
    put('L', message, fds);
    return Ok{};
  }
  void changed() override {}

  void pin(std::uint32_t slot, const Segment& memory) {
    announce(slot, memory, *backend_->pin(slot, memory));
  }
  void announce(std::uint32_t slot, const Segment& memory, const core::Bytes& key) {
    put('P', base::Writer().put(slot).put(memory.address).put(memory.bytes).sized(key).take());
  }
  Status unpin(std::uint32_t slot) { return viaduct::testing::withdraw(*backend_, slot); }
  void say(std::string_view text) { put('S', std::as_bytes(std::span(text))); }

  // Makes progress until `until()` is true; false after half a minute.
  bool run(const std::function<bool()>& until) {
    const auto end = Clock::now() + std::chrono::seconds(30);
    while (!until()) {
      turn();
      if (Clock::now() > end) return until();
    }
    return true;
  }
  void turn() {
    receive();
    rail().poll(done);
  }
  bool hears(std::string_view text) {
    return run([&] {
      const bool heard = !said.empty() && said.front() == text;
      if (heard) said.pop_front();
      return heard;
    });
  }
  bool ready() {
    return run([&] { return link_->state().phase != core::LinkState::Phase::kOpening; }) &&
           link_->state().phase == core::LinkState::Phase::kReady;
  }
  bool reaches(std::uint32_t here, std::uint32_t there, std::string_view way) {
    return run([&] { return link_->reaches(OpKind::kWrite, here, there).has_value(); }) &&
           link_->reaches(OpKind::kWrite, here, there) == way;
  }

  std::size_t post(OpKind kind, std::span<const core::Op> ops, std::uint64_t number = 1) {
    return rail().post(
        {.kind = kind, .slice = core::testing::sliceOf(number), .link = link_.get(), .ops = ops});
  }
  // Posts the ops and waits for all of them. Returns the error if any failed.
  std::optional<Error> move(OpKind kind, std::span<const core::Op> ops) {
    done.clear();
    std::size_t taken = post(kind, ops);
    std::uint64_t back = 0;
    std::optional<Error> why;
    const bool over = taken == ops.size() && run([&] {
                        for (const auto& one : std::exchange(done, {})) {
                          back += core::endedOps(one);
                          if (const auto* failed = std::get_if<core::Failed>(&one))
                            why = failed->why;
                        }
                        return back == ops.size();
                      });
    if (!over) return Error{.code = Code::kTimeout, .operation = "test move"};
    return why;
  }

  core::Backend& backend() { return *backend_; }
  core::Rail& rail() { return *backend_->rails().front(); }
  core::Link& link() { return *link_; }

  std::deque<std::string> said;                                       // lines from the other end
  std::vector<core::RemotePin> pins;                                  // pins of the other end
  std::deque<std::pair<core::Bytes, std::vector<core::Fd>>> letters;  // only if raw
  unsigned files = 0;                                                 // offered to this end
  core::Completions done;

 private:
  void put(char kind, std::span<const std::byte> body, std::span<const int> fds = {}) {
    std::array<iovec, 2> parts{iovec{&kind, 1},
                               iovec{const_cast<std::byte*>(body.data()), body.size()}};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(8 * sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    if (!fds.empty()) {
      message.msg_control = control.data();
      message.msg_controllen = CMSG_SPACE(fds.size_bytes());
      cmsghdr* head = CMSG_FIRSTHDR(&message);
      head->cmsg_level = SOL_SOCKET;
      head->cmsg_type = SCM_RIGHTS;
      head->cmsg_len = CMSG_LEN(fds.size_bytes());
      std::memcpy(CMSG_DATA(head), fds.data(), fds.size_bytes());
    }
    ::sendmsg(socket_, &message, MSG_NOSIGNAL);
  }

  // Receives one message, if there is one.
  void receive() {
    std::array<char, 4096> body{};
    iovec part{body.data(), body.size()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(8 * sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t got = ::recvmsg(socket_, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got <= 0) return;
    std::vector<core::Fd> fds;
    if (const cmsghdr* head = CMSG_FIRSTHDR(&message); head != nullptr)
      for (std::size_t i = 0; i < (head->cmsg_len - CMSG_LEN(0)) / sizeof(int); ++i) {
        int fd = -1;
        std::memcpy(&fd, CMSG_DATA(head) + i * sizeof(int), sizeof fd);
        fds.emplace_back(fd);
      }
    const auto bytes = std::as_bytes(std::span(body)).first(static_cast<std::size_t>(got));
    take(body[0], bytes.subspan(1), std::move(fds));
  }

  void take(char kind, std::span<const std::byte> body, std::vector<core::Fd> fds) {
    base::Reader in(body);
    if (kind == 'S') {
      said.emplace_back(reinterpret_cast<const char*>(body.data()), body.size());
    } else if (kind == 'P') {
      core::RemotePin pin;
      pin.info.slot = in.get<std::uint32_t>();
      pin.info.address = in.get<std::uint64_t>();
      pin.info.bytes = in.get<std::uint64_t>();
      const auto key = in.sized();
      pin.key.assign(key.begin(), key.end());
      pins.push_back(pin);
      if (link_) link_->addPin(pin);
    } else if (link_) {
      if (const auto message = decode(body); message && std::holds_alternative<FileOffer>(*message))
        ++files;
      link_->receive(body, std::move(fds));
    } else {
      letters.emplace_back(core::Bytes(body.begin(), body.end()), std::move(fds));
    }
  }

  int socket_;
  Settings settings_;
  std::unique_ptr<base::Poller> poller_;
  std::unique_ptr<core::Backend> backend_;
  std::unique_ptr<core::Link> link_;
};

// A forked process that runs `body` on its end, and exits with 0 if it returned true.
class Child {
 public:
  using Body = std::function<bool(int socket, int parent_pid)>;
  explicit Child(const Body& body, bool own_pid_namespace = false) {
    std::array<int, 2> sockets{};
    std::array<int, 2> pids{};
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets.data()) != 0 ||
        ::pipe2(pids.data(), O_CLOEXEC) != 0)
      return;
    socket_.reset(sockets[0]);
    const int parent = ::getpid();
    pid_ = ::fork();
    if (pid_ == 0) {
      socket_.reset();
      int seen = parent;
      if (own_pid_namespace) {
        if (::unshare(0x20000000 /* CLONE_NEWPID */) != 0) ::_exit(77);
        const int inner = ::fork();
        if (inner != 0) {
          static_cast<void>(::write(pids[1], &inner, sizeof inner) == sizeof inner);
          ::close(sockets[1]);
          int status = 0;
          ::waitpid(inner, &status, 0);
          ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
        }
        seen = 0;
      }
      ::_exit(body(sockets[1], seen) ? 0 : 1);
    }
    ::close(sockets[1]);
    ::close(pids[1]);
    inner_ = pid_;
    if (own_pid_namespace && ::read(pids[0], &inner_, sizeof inner_) != sizeof inner_) inner_ = 0;
    ::close(pids[0]);
  }
  ~Child() {
    if (pid_ <= 0 || ended_) return;
    if (inner_ > 0 && inner_ != pid_) ::kill(inner_, SIGKILL);
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  int socket() const { return socket_.get(); }
  int pid() const { return inner_; }  // process that runs `body`; 0: it could not start
  void signal(int number) const { ::kill(inner_, number); }
  // Waits until the process has stopped itself.
  bool stopped() const {
    int status = 0;
    return ::waitpid(pid_, &status, WUNTRACED) == pid_ && WIFSTOPPED(status);
  }
  int exitCode() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    ended_ = true;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  base::Fd socket_;
  int pid_ = -1, inner_ = 0;
  bool ended_ = false;
};

}  // namespace viaduct::local::testing
