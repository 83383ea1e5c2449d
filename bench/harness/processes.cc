#include "harness/processes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>

namespace viaduct::bench {
namespace {

constexpr int kOurKill = SIGTERM;

void endWithFailedChild(int, siginfo_t* child, void*) {
  if (child->si_status != 0 && child->si_status != kOurKill) std::_Exit(1);
}

void watchChildren() {
  struct sigaction action{};
  action.sa_sigaction = &endWithFailedChild;
  action.sa_flags = SA_SIGINFO | SA_RESTART | SA_NOCLDSTOP;
  must(::sigaction(SIGCHLD, &action, nullptr), "sigaction");
}

}  // namespace

void Channel::send(std::span<const std::byte> message) const {
  must(::send(socket_.get(), message.data(), message.size(), MSG_NOSIGNAL), "send to a process");
}

std::vector<std::byte> Channel::receive() const {
  std::vector<std::byte> message(std::size_t{64} << 10U);
  auto got = ::recv(socket_.get(), message.data(), message.size(), 0);
  if (got < 0 && errno == ECONNRESET) got = 0;  // the other end left our last message unread
  message.resize(static_cast<std::size_t>(must(got, "receive from a process")));
  return message;
}

Child::Child(const Body& body) : Channel(Fd()) {
  std::array<int, 2> ends{};
  must(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), "socketpair");
  Fd ours(ends[0]), theirs(ends[1]);
  watchChildren();
  std::fflush(stdout);
  pid_ = must(::fork(), "fork");
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ours.reset();
    Channel parent(std::move(theirs));
    body(parent);
    std::fflush(stdout);
    ::_exit(0);
  }
  socket_ = std::move(ours);
}

// A process that was started later may hold a copy of our end, so closing it would not be enough.
Child::~Child() {
  ::shutdown(socket_.get(), SHUT_RDWR);
  socket_.reset();
  ::waitpid(pid_, nullptr, 0);
}

bool Child::ended() const {
  siginfo_t info{};
  must(::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT), "waitid");
  return info.si_pid == pid_;
}

void Child::kill() const { ::kill(pid_, kOurKill); }

std::byte* mapped(std::size_t bytes, int flags) {
  void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) dieOf("mmap");
  return static_cast<std::byte*>(at);
}

std::byte* touched(std::size_t bytes) {
  std::byte* const at = mapped(bytes, MAP_PRIVATE);
  std::memset(at, 1, bytes);
  return at;
}

void pinTo(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  static_cast<void>(::sched_setaffinity(0, sizeof(set), &set));
}

void enterNetwork(const std::string& file) {
  const Fd space(must(::open(file.c_str(), O_RDONLY | O_CLOEXEC), "open the network namespace"));
  must(::setns(space.get(), CLONE_NEWNET), "enter the network namespace");
}

}  // namespace viaduct::bench
