// The time up to a first transfer, step by step: an agent is opened, and writes 4 KiB to an agent
// in another process. Both processes are forked for each round. `bare` makes only the necessary
// system calls, and the cryptography of a handshake: docs/measured/agent.md.
//   first_transfer_bench [ROUNDS] [BACKEND | default | bare]...
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cstdio>
#include <thread>

#include "base/lists.h"
#include "base/net/aead.h"
#include "base/net/key_exchange.h"
#include "harness/agents.h"

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
    times_[at_++] = 1e3 * secondsBetween(last_, now);
    last_ = now;
    times_.back() = 1e3 * secondsBetween(begun_, now);
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

void visit(const std::string& backend, const Channel& parent) {
  const auto card = parent.receive();
  Steps steps;
  Agent agent = must(Agent::open(with(backend)));
  steps.done();
  const Pin memory = must(agent.allocate(kBytes));
  steps.done();
  const Peer peer = must(agent.importCard(card));
  must(peer.ready(kLong));
  steps.done();
  const PinInfo inbox = must(peer.waitPin(kMemory, kLong));
  steps.done();
  Transfer transfer = must(agent.plan(
      OpKind::kWrite, peer, blocks({.base = memory.info().address, .bytes = kBytes, .count = 1}),
      blocks({.base = inbox.address, .bytes = kBytes, .count = 1})));
  steps.done();
  for (int i = 0; i < 3; ++i) {
    if (i != 0) steps.pause();
    postAndWait(transfer);
    steps.done();
  }
  parent.sendValue(steps.times());
}

// The floor: two epoll loops, and a Unix socket with the three round trips of a session's
// handshake. The last answer carries a memfd, into which the data is copied. Each end uses
// libcrypto once before, as Agent::open() does, and once for the handshake.

// A message, and room for a descriptor.
struct Message {
  Message() {
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
  }
  std::array<std::byte, 96> bytes{};
  iovec part{.iov_base = bytes.data(), .iov_len = bytes.size()};
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int))> control{};
  msghdr header{};
};
constexpr int kRoundTrips = 3;

sockaddr_un nameOf(pid_t server) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::snprintf(&name.sun_path[1], sizeof(name.sun_path) - 1, "viaduct-bench-%d", server);
  return name;
}

void sendWith(int socket, int fd) {
  Message message;
  if (fd < 0) message.header.msg_controllen = 0;
  if (fd >= 0) {
    cmsghdr* const rights = CMSG_FIRSTHDR(&message.header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof fd);
    std::memcpy(CMSG_DATA(rights), &fd, sizeof fd);
  }
  must(::sendmsg(socket, &message.header, MSG_NOSIGNAL), "sendmsg");
}

// The descriptor that a message carried, or -1.
int receiveFrom(int socket) {
  Message message;
  must(::recvmsg(socket, &message.header, 0), "recvmsg");
  const cmsghdr* const rights = CMSG_FIRSTHDR(&message.header);
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
std::byte* mappedFile(int fd) {
  void* const at = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) dieOf("mmap");
  return static_cast<std::byte*>(at);
}

// The key pair of one end, the common secret, and a cipher for each direction.
void agreeOnKeys() {
  const auto pair = must(base::KeyExchange::begin());
  static_cast<void>(must(pair.with(pair.publicKey())));
  for (const auto use : {base::AeadUse::kSeal, base::AeadUse::kOpen})
    static_cast<void>(must(base::makeAead(base::AeadKind::kAesGcm, use)));
}

void serveBare(const Channel& parent) {
  agreeOnKeys();
  const Fd inbox(newMemory());
  const Fd listening(must(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"));
  const sockaddr_un name = nameOf(::getpid());
  must(::bind(listening.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name), "bind");
  must(::listen(listening.get(), 1), "listen");
  const Fd epoll(must(::epoll_create1(EPOLL_CLOEXEC), "epoll_create1"));
  watch(epoll.get(), listening.get());
  parent.sendValue(::getpid());
  sleepOn(epoll.get());
  const Fd peer(must(::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC), "accept4"));
  watch(epoll.get(), peer.get());
  for (int i = 1; i <= kRoundTrips; ++i) {
    sleepOn(epoll.get());
    receiveFrom(peer.get());
    if (i == 1) agreeOnKeys();
    sendWith(peer.get(), i == kRoundTrips ? inbox.get() : -1);
  }
  parent.receive();
}

void visitBare(const Channel& parent) {
  const auto server = parent.receiveValue<pid_t>();
  Steps steps;
  const Fd epoll(must(::epoll_create1(EPOLL_CLOEXEC), "epoll_create1"));
  agreeOnKeys();
  steps.done();
  const Fd memory(newMemory());
  const void* const from = mappedFile(memory.get());
  steps.done();
  const Fd socket(must(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"));
  const sockaddr_un name = nameOf(server);
  must(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name), "connect");
  watch(epoll.get(), socket.get());
  agreeOnKeys();
  int inbox = -1;
  for (int i = 0; i < kRoundTrips; ++i) {
    sendWith(socket.get(), -1);
    sleepOn(epoll.get());
    inbox = receiveFrom(socket.get());
  }
  steps.done();
  const Fd theirs(inbox);
  void* const into = mappedFile(theirs.get());
  steps.done();
  steps.done();  // no planning is needed
  for (int i = 0; i < 3; ++i) {
    std::memcpy(into, from, kBytes);
    steps.done();
  }
  parent.sendValue(steps.times());
}

Times oneRound(const std::string& way) {
  if (way == "bare") {
    const Child server(serveBare);
    const auto number = server.receiveValue<pid_t>();
    const Child client(visitBare);
    client.sendValue(number);
    return client.receiveValue<Times>();
  }
  const TargetProcess target(with(way), kBytes);
  const Child client([&](Channel& parent) { visit(way, parent); });
  client.send(target.card);
  return client.receiveValue<Times>();
}

struct Case {
  std::string way;
  std::array<Samples, kSteps.size()> ms = {};
};

}  // namespace

int main(int argc, char** argv) {
  const Arguments given(argc, argv, "first_transfer_bench [ROUNDS [BACKEND|default|bare...]]");
  const Rounds rounds{given.number(0, 21)};
  auto cases = base::mapped(given.from(1, {"bare", "local", "tcp", "default"}),
                            [](const std::string& way) { return Case{way}; });
  inTurns(rounds, cases, [](Case& one, int) {
    const Times times = oneRound(one.way);
    for (std::size_t step = 0; step < times.size(); ++step) one.ms[step].add(times[step]);
  });
  fmt::print("two fresh processes, {} times\n", rounds.counted);
  Table table({words("", 8), words("", 24), figure("median, ms", 3), figure("least", 3),
               figure("most", 3)});
  for (const Case& one : cases)
    for (std::size_t step = 0; step < kSteps.size(); ++step)
      table.row(one.way, kSteps[step], one.ms[step], one.ms[step].least(), one.ms[step].most());
}
