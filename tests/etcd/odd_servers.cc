#include "etcd/odd_servers.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <vector>

namespace viaduct::testing {
namespace {

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  out.sin_port = htons(port);
  out.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return out;
}

base::Fd listenAnywhere(std::uint16_t& port) {
  base::Fd out(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof(address);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (::bind(out.get(), generic, size) != 0 || ::listen(out.get(), 64) != 0 ||
      ::getsockname(out.get(), generic, &size) != 0)
    ADD_FAILURE() << "cannot listen";
  port = ntohs(address.sin_port);
  return out;
}

std::string urlOf(std::uint16_t port) { return fmt::format("http://127.0.0.1:{}", port); }

// Reads a whole request, of which `got` has arrived: its head, and the body that Content-Length
// announces.
bool readRequest(int fd, std::string& got) {
  std::array<char, 4096> buffer;
  for (;;) {
    const std::size_t head = got.find("\r\n\r\n");
    if (head != std::string::npos) {
      const std::size_t at = got.find("Content-Length: ");
      const std::size_t body = at == std::string::npos ? 0 : std::stoul(got.substr(at + 16));
      if (got.size() >= head + 4 + body) return true;
    }
    const ssize_t more = ::read(fd, buffer.data(), buffer.size());
    if (more <= 0) return false;
    got.append(buffer.data(), static_cast<std::size_t>(more));
  }
}

bool writeAll(int fd, const char* data, std::size_t bytes) {
  while (bytes > 0) {
    const ssize_t put = ::send(fd, data, bytes, MSG_NOSIGNAL);
    if (put <= 0) return false;
    data += put;
    bytes -= static_cast<std::size_t>(put);
  }
  return true;
}

}  // namespace

SilentServer::SilentServer() : listener_(listenAnywhere(port_)) {}
std::string SilentServer::url() const { return urlOf(port_); }

ParrotServer::ParrotServer(std::string answer, int times)
    : answer_(std::move(answer)),
      times_(times),
      listener_(listenAnywhere(port_)),
      thread_([this] { serve(); }) {}

ParrotServer::~ParrotServer() {
  stop_ = true;
  ::shutdown(listener_.get(), SHUT_RDWR);
  thread_.join();
}

std::string ParrotServer::url() const { return urlOf(port_); }

void ParrotServer::serve() {
  while (!stop_ && times_ > 0) {
    const base::Fd one(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    std::string request;
    if (!one || !readRequest(one.get(), request)) continue;
    writeAll(one.get(), answer_.data(), answer_.size());
    --times_;
  }
}

Forwarder::Forwarder(std::uint16_t to)
    : to_(to),
      listener_(listenAnywhere(port_)),
      bell_(::eventfd(0, EFD_CLOEXEC)),
      thread_([this] { serve(); }) {}

Forwarder::~Forwarder() {
  stop_ = true;
  cut();
  ::shutdown(listener_.get(), SHUT_RDWR);
  thread_.join();
  while (open_ > 0) std::this_thread::yield();
}

std::string Forwarder::url() const { return urlOf(port_); }

// On return no more bytes pass.
void Forwarder::cut() {
  cut_ = true;
  ::eventfd_write(bell_.get(), 1);
  while (open_ > 0) std::this_thread::yield();
}

void Forwarder::mend() {
  eventfd_t rung = 0;
  ::eventfd_read(bell_.get(), &rung);
  cut_ = false;
}

void Forwarder::keep(Keep what, const std::string& path) {
  keeps_answer_ = what == Keep::kAnswer;
  kept_path_ = "POST " + path;
  keeps_ = true;
}

void Forwarder::waitUntilKept() const {
  while (!kept_) std::this_thread::yield();
}

void Forwarder::letGo() {
  let_go_ = true;
  while (!done_) std::this_thread::yield();
}

void Forwarder::keepOne(std::string request, int from, int to) {
  const auto askEtcd = [&] {
    std::array<char, 4096> answer;
    if (!writeAll(to, request.data(), request.size()) ||
        ::read(to, answer.data(), answer.size()) <= 0)
      ADD_FAILURE() << "etcd did not take what was kept";
  };
  if (!readRequest(from, request)) ADD_FAILURE() << "half a request";
  if (keeps_answer_) askEtcd();
  kept_ = true;
  while (!let_go_ && !stop_) std::this_thread::yield();
  if (!keeps_answer_ && !stop_) askEtcd();
  done_ = true;
}

void Forwarder::serve() {
  while (!stop_) {
    base::Fd one(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!one || cut_) continue;
    ++open_;
    std::thread([this, from = std::move(one)]() mutable {
      pass(std::move(from));
      --open_;
    }).detach();
  }
}

void Forwarder::pass(base::Fd from) {
  const base::Fd to(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = loopback(to_);
  if (::connect(to.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
    return;
  std::array<pollfd, 3> wait{{{.fd = from.get(), .events = POLLIN, .revents = 0},
                              {.fd = to.get(), .events = POLLIN, .revents = 0},
                              {.fd = bell_.get(), .events = POLLIN, .revents = 0}}};
  std::vector<char> buffer(64 * 1024);
  bool lose = false;
  while (::poll(wait.data(), wait.size(), -1) > 0 && wait[2].revents == 0) {
    for (const int side : {0, 1}) {
      if (wait[static_cast<std::size_t>(side)].revents == 0) continue;
      const int in = side == 0 ? from.get() : to.get(), out = side == 0 ? to.get() : from.get();
      const ssize_t got = ::read(in, buffer.data(), buffer.size());
      if (got <= 0 || (side == 1 && lose)) return;
      const std::string_view bytes(buffer.data(), static_cast<std::size_t>(got));
      const bool asks = side == 0 && bytes.find("POST /v3/kv/txn") != bytes.npos;
      if (side == 0 && keeps_ && bytes.find(kept_path_) != bytes.npos && keeps_.exchange(false))
        return keepOne(std::string(bytes), in, out);
      if (asks && losing_) lose = transactions_++ % 2 == 0;
      const bool leases = side == 0 && bytes.find("POST /v3/lease/grant") != bytes.npos;
      if (leases && losing_) lose = leases_++ % 2 == 0;
      if (!writeAll(out, buffer.data(), static_cast<std::size_t>(got))) return;
    }
  }
}

}  // namespace viaduct::testing
