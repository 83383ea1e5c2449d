// The time up to a first transfer, step by step: an agent is opened, and writes 4 KiB to an agent
// in another process. Both processes are forked for each round. `bare` makes only the necessary
// system calls: docs/measured/agent.md.
//   first_transfer_bench [ROUNDS] [BACKEND | default | bare]...
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <viaduct/viaduct.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "forked.h"

namespace {

using namespace std::chrono_literals;
using namespace viaduct;
using namespace viaduct::bench;

constexpr std::uint64_t kBytes = 4096;

constexpr std::array kSteps{"open the agent",
                            "allocate 4 KiB",
                            "importCard until ready",
                            "the peer's pin",
                            "plan",
                            "post until the end",
                            "second, target asleep",
                            "third, target asleep",
                            "all, without the fork"};
using Times = std::array<double, kSteps.size()>;

// The time of each step that done() ends, and in the last place the time of all steps so far.
class Steps {
 public:
  void done() {
    const auto now = Clock::now();
    times_[at_++] = ms(now - last_);
    last_ = now;
    times_.back() = ms(now - begun_);
  }
  // Waits until the other process sleeps. No step counts that time.
  void pause() {
    const auto start = Clock::now();
    std::this_thread::sleep_for(10ms);
    const auto slept = Clock::now() - start;
    begun_ += slept;
    last_ += slept;
  }
  const Times& times() const { return times_; }

 private:
  static double ms(Clock::duration d) { return std::chrono::duration<double>(d).count() * 1e3; }
  Times times_{};
  std::size_t at_ = 0;
  Clock::time_point begun_ = Clock::now();
  Clock::time_point last_ = begun_;
};

Settings with(const std::string& backend) {
  Settings settings;
  if (backend != "default") settings.backends = {backend};
  return settings;
}

// An agent with memory "inbox" that lives until the parent writes to `in` or closes it.
Status serve(const std::string& backend, int in, int out) {
  VIADUCT_TRY(auto agent, Agent::open(with(backend)));
  VIADUCT_TRY(auto inbox, agent.allocate(kBytes, {.label = "inbox"}));
  put(out, agent.exportCard());
  get(in);
  return Ok{};
}

Status visit(const std::string& backend, int in, int out) {
  const auto card = get(in);
  Steps steps;
  VIADUCT_TRY(auto agent, Agent::open(with(backend)));
  steps.done();
  VIADUCT_TRY(auto memory, agent.allocate(kBytes));
  steps.done();
  VIADUCT_TRY(auto peer, agent.importCard(card));
  VIADUCT_CHECK(peer.ready(10s));
  steps.done();
  VIADUCT_TRY(auto inbox, peer.waitPin("inbox", 10s));
  steps.done();
  VIADUCT_TRY(auto here,
              Blocks::strided({.base = memory.info().address, .bytes = kBytes, .count = 1}));
  VIADUCT_TRY(auto there, Blocks::strided({.base = inbox.address, .bytes = kBytes, .count = 1}));
  VIADUCT_TRY(auto transfer, agent.plan(OpKind::kWrite, peer, {here}, {there}));
  steps.done();
  for (int i = 0; i < 3; ++i) {
    if (i != 0) steps.pause();
    VIADUCT_CHECK(transfer.post());
    VIADUCT_CHECK(transfer.wait(10s));
    steps.done();
  }
  putValue(out, steps.times());
  return Ok{};
}

// The floor: two epoll loops, and a Unix socket with the three round trips of a session's
// handshake. The last answer carries a memfd, into which the data is copied.

struct Message {
  std::array<std::byte, 96> bytes{};
};
constexpr int kRoundTrips = 3;

int must(long result, const char* what) {
  if (result >= 0) return static_cast<int>(result);
  std::perror(what);
  std::exit(1);
}

sockaddr_un nameOf(pid_t server) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::snprintf(&name.sun_path[1], sizeof(name.sun_path) - 1, "viaduct-bench-%d", server);
  return name;
}

void sendWith(int socket, int fd) {
  Message message;
  iovec part{.iov_base = &message, .iov_len = sizeof message};
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (fd >= 0) {
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    cmsghdr* const rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof fd);
    std::memcpy(CMSG_DATA(rights), &fd, sizeof fd);
  }
  must(::sendmsg(socket, &header, MSG_NOSIGNAL), "sendmsg");
}

// The descriptor that a message carried, or -1.
int receiveFrom(int socket) {
  Message message;
  iovec part{.iov_base = &message, .iov_len = sizeof message};
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  must(::recvmsg(socket, &header, 0), "recvmsg");
  const cmsghdr* const rights = CMSG_FIRSTHDR(&header);
  int fd = -1;
  if (rights != nullptr) std::memcpy(&fd, CMSG_DATA(rights), sizeof fd);
  return fd;
}

void watch(int epoll, int fd) {
  epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
  must(::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), "epoll_ctl");
}
void sleepOn(int epoll) {
  epoll_event event;
  must(::epoll_wait(epoll, &event, 1, -1), "epoll_wait");
}

int newMemory() {
  const int fd = must(::memfd_create("bare", MFD_CLOEXEC), "memfd_create");
  must(::ftruncate(fd, kBytes), "ftruncate");
  return fd;
}
void* mapped(int fd) {
  void* const at = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) must(-1, "mmap");
  return at;
}

Status serveBare(int in, int out) {
  const Fd inbox(newMemory());
  const Fd listening(must(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"));
  const sockaddr_un name = nameOf(::getpid());
  must(::bind(listening.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name), "bind");
  must(::listen(listening.get(), 1), "listen");
  const Fd epoll(must(::epoll_create1(EPOLL_CLOEXEC), "epoll_create1"));
  watch(epoll.get(), listening.get());
  putValue(out, ::getpid());
  sleepOn(epoll.get());
  const Fd peer(must(::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC), "accept4"));
  watch(epoll.get(), peer.get());
  for (int i = 1; i <= kRoundTrips; ++i) {
    sleepOn(epoll.get());
    receiveFrom(peer.get());
    sendWith(peer.get(), i == kRoundTrips ? inbox.get() : -1);
  }
  get(in);
  return Ok{};
}

Status visitBare(int in, int out) {
  const auto server = getValue<pid_t>(in);
  Steps steps;
  const Fd epoll(must(::epoll_create1(EPOLL_CLOEXEC), "epoll_create1"));
  steps.done();
  const Fd memory(newMemory());
  const void* const from = mapped(memory.get());
  steps.done();
  const Fd socket(must(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"));
  const sockaddr_un name = nameOf(server);
  must(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name), "connect");
  watch(epoll.get(), socket.get());
  int inbox = -1;
  for (int i = 0; i < kRoundTrips; ++i) {
    sendWith(socket.get(), -1);
    sleepOn(epoll.get());
    inbox = receiveFrom(socket.get());
  }
  steps.done();
  const Fd theirs(inbox);
  void* const into = mapped(theirs.get());
  steps.done();
  steps.done();  // no planning is needed
  for (int i = 0; i < 3; ++i) {
    std::memcpy(into, from, kBytes);
    steps.done();
  }
  putValue(out, steps.times());
  return Ok{};
}

Times oneRound(const std::string& way) {
  const bool bare = way == "bare";
  const Child server(
      [&](int in, int out) { return bare ? serveBare(in, out) : serve(way, in, out); });
  const auto card = get(server.in());
  const Child client(
      [&](int in, int out) { return bare ? visitBare(in, out) : visit(way, in, out); });
  put(client.out(), card);
  const Times times = getValue<Times>(client.in());
  if (times.back() == 0) std::exit(1);  // the child has printed the reason
  return times;
}

void print(const std::string& way, const std::vector<Times>& rounds) {
  for (std::size_t step = 0; step < kSteps.size(); ++step) {
    std::vector<double> values;
    values.reserve(rounds.size());
    for (const Times& one : rounds) values.push_back(one[step]);
    std::sort(values.begin(), values.end());
    std::printf("%-8s %-24s %8.3f %8.3f %8.3f ms\n", way.c_str(), kSteps[step],
                values[values.size() / 2], values.front(), values.back());
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 21;
  std::vector<std::string> ways(argv + std::min(argc, 2), argv + argc);
  if (ways.empty()) ways = {"bare", "local", "tcp", "default"};
  std::vector<std::vector<Times>> all(ways.size());
  // The ways take turns, so that a change of the machine's speed affects all of them.
  for (int i = 0; i < rounds; ++i)
    for (std::size_t way = 0; way < ways.size(); ++way) all[way].push_back(oneRound(ways[way]));
  std::printf("two fresh processes, %d times%8smedian    least     most\n", rounds, "");
  for (std::size_t way = 0; way < ways.size(); ++way) print(ways[way], all[way]);
  return 0;
}
