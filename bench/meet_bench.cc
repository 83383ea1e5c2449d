// The cost of meeting at the embedded place: 64 processes of this machine, and thousands of members
// that one process simulates.   meet_bench [processes [rounds [members]]]
#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/net/address.h"
#include "base/random.h"
#include "meet/embedded/message_socket.h"
#include "meet/groups/group_messages.h"
#include "meet/groups/server.h"

namespace {

using namespace viaduct;
using namespace viaduct::meet;
using std::chrono::seconds;

const StopFlag kGoOn{false};

double since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

[[noreturn]] void die(const std::string& why) {
  fmt::print(stderr, "meet_bench: {}\n", why);
  std::_Exit(1);
}

std::uint64_t residentKiB() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind("VmRSS:", 0) == 0) return std::strtoull(line.c_str() + 6, nullptr, 10);
  return 0;
}

double cpuMicroseconds() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto of = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_usec);
  };
  return of(used.ru_utime) + of(used.ru_stime);
}

// One of the processes. Rank 0 prints the figures.
void member(const std::string& where, std::uint32_t size, int rounds) {
  auto place = openGroupPlace({.where = where, .token = "bench"});
  if (!place) die(place.error().text());
  const auto came = Clock::now();
  auto group =
      (*place)->join({.size = size, .name = std::to_string(::getpid())}, seconds(60), kGoOn);
  if (!group) die(group.error().text());
  const double joined = since(came);
  const std::string value(100, 'v');
  std::array<std::vector<double>, 2> times;
  for (int i = 0; i < 2 * rounds + 2; ++i) {
    const auto start = Clock::now();
    const bool barrier = i % 2 == 0;
    if (auto all = (*group)->gather(barrier ? "" : value, seconds(60), kGoOn); !all)
      die(all.error().text());
    if (i >= 2) times[barrier ? 0 : 1].push_back(since(start));
  }
  if ((*group)->roster().rank == 0) {
    for (auto& list : times) std::sort(list.begin(), list.end());
    const auto at = [](const std::vector<double>& list, double q) {
      return list[static_cast<std::size_t>(q * static_cast<double>(list.size() - 1))];
    };
    fmt::print("{} processes: join {:.1f} ms (rank 0, from its start to whole)\n", size, joined);
    fmt::print("  barrier        median {:.2f} ms, p90 {:.2f}, max {:.2f}\n", at(times[0], 0.5),
               at(times[0], 0.9), times[0].back());
    fmt::print("  gather of 100 B median {:.2f} ms, p90 {:.2f}, max {:.2f}\n", at(times[1], 0.5),
               at(times[1], 0.9), times[1].back());
  }
  if (const Status finished = (*group)->finish(seconds(60)); !finished)
    die(finished.error().text());
}

// Forks the processes before the server starts its thread.
void manyProcesses(std::uint32_t count, int rounds) {
  auto listening = EmbeddedServer::listen("127.0.0.1:0");
  if (!listening) die(listening.error().text());
  const std::string where = base::localAddress(listening->get())->text();
  for (std::uint32_t i = 0; i < count; ++i) {
    std::fflush(stdout);
    if (::fork() == 0) {
      member(where, count, rounds);
      std::fflush(stdout);
      std::_Exit(0);
    }
  }
  const auto server = EmbeddedServer::start({.listening = std::move(*listening), .token = "bench"});
  if (!server) die(server.error().text());
  for (std::uint32_t i = 0; i < count; ++i) ::wait(nullptr);
}

// A member as a state machine, so that thousands fit into one process and thread. Each real member
// reads the roster itself. Here one member reads it, and the others check that their bytes are
// equal.
class Simulated {
 public:
  Simulated(const std::string& where, std::uint32_t size, embedded::Bytes& roster)
      : size_(size), roster_(roster) {
    const auto address = base::resolve(*base::parseHostPort(where))->front();
    base::Fd socket(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::connect(socket.get(), address.get(), address.size) != 0) die("connect");
    static_cast<void>(base::tuneSocket(socket.get()));
    socket_ = std::make_unique<embedded::MessageSocket>(std::move(socket), embedded::kMaxUnproven);
    send(embedded::Type::kOpen, handshake_.open());
  }
  int fd() const { return socket_->fd(); }
  bool whole() const { return whole_; }
  std::uint64_t rounds() const { return rounds_; }
  void gather() { send(embedded::Type::kGather, groups::GatherMessage{rounds_, ""}); }
  void beat() { send(embedded::Type::kBeat, embedded::Bytes()); }
  void read() {
    const auto got = socket_->read([this](const base::Frame& frame) -> Status {
      take(embedded::typeOf(frame), frame.payload);
      return Ok{};
    });
    if (!got || !*got) die("a simulated member was turned away");
  }

 private:
  void send(embedded::Type type, const auto& message) {
    if (!socket_->send(embedded::makePacket(type, message))) die("send");
  }
  void take(embedded::Type type, embedded::ByteSpan payload) {
    using embedded::Type;
    if (type == Type::kChallenge) {
      auto step = handshake_.take(base::Handshake::Stage::kChallenge, payload, 0);
      if (!step) die(step.error().text());
      send(Type::kProof, step->reply);
      socket_->useKeys(handshake_.sendingKey(), handshake_.receivingKey());
    } else if (type == Type::kWelcome) {
      socket_->setLimit(embedded::kMaxFromServer);
      send(Type::kJoin, groups::JoinMessage{"/viaduct", {"sim", size_, {}, name(), ""}});
    } else if (type == Type::kPing) {
      send(Type::kPong, embedded::Bytes(payload.begin(), payload.end()));
    } else if (type == Type::kFormed) {
      whole_ = true;
      if (roster_.empty()) roster_.assign(payload.begin(), payload.end());
      if (!std::equal(payload.begin(), payload.end(), roster_.begin(), roster_.end()))
        die("two members got different rosters");
    } else if (type == Type::kValues) {
      ++rounds_;
    } else if (type == Type::kTrouble) {
      die(base::decode<embedded::ErrorMessage>(payload)->error.text());
    }
  }

  // Names like those of real members: eight processes per host, each with its own number.
  std::string name() const {
    return fmt::format("node{:04}:{}", fd() / 8, 10'000 + fd() * 7919 % 50'000);
  }

  std::uint32_t size_;
  embedded::Bytes& roster_;
  std::unique_ptr<embedded::MessageSocket> socket_;
  base::Handshake handshake_ = *base::Handshake::begin(true, base::secretFromText("bench"),
                                                       embedded::kVersion, embedded::kBinding);
  bool whole_ = false;
  std::uint64_t rounds_ = 0;
};

class Crowd {
 public:
  Crowd(const std::string& where, std::uint32_t count) : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
    for (std::uint32_t i = 0; i < count; ++i) {
      members_.push_back(std::make_unique<Simulated>(where, count, roster_));
      epoll_event event{.events = EPOLLIN, .data = {.ptr = members_.back().get()}};
      ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, members_.back()->fd(), &event);
      // Makes progress between connects, so that the server need not wait for early members until
      // all have connected.
      turn(0);
    }
  }
  template <class Done>
  void until(Done done) {
    auto beaten = Clock::now();
    while (!std::all_of(members_.begin(), members_.end(), done)) {
      turn(100);
      if (Clock::now() - beaten < std::chrono::milliseconds(500)) continue;
      beaten = Clock::now();
      for (auto& member : members_) member->beat();
    }
  }
  std::vector<std::unique_ptr<Simulated>>& members() { return members_; }
  std::size_t rosterBytes() const { return roster_.size(); }
  // Microseconds that a member spends on the roster: the median of several.
  double readRoster() const {
    std::array<double, 21> times;
    for (double& time : times) {
      const auto start = Clock::now();
      if (!base::decode<groups::FormedMessage>(roster_)) die("a roster that cannot be read");
      time = since(start) * 1000;
    }
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
  }

 private:
  void turn(int milliseconds) {
    std::array<epoll_event, 256> events;
    const int count = ::epoll_wait(epoll_.get(), events.data(), events.size(), milliseconds);
    for (int i = 0; i < count; ++i)
      static_cast<Simulated*>(events[static_cast<std::size_t>(i)].data.ptr)->read();
  }

  embedded::Bytes roster_;
  base::Fd epoll_;
  std::vector<std::unique_ptr<Simulated>> members_;
};

void simulated(std::uint32_t count) {
  // 30 s, because this one process plays all members and must not count as frozen.
  auto server = EmbeddedServer::start({.token = "bench", .detect = seconds(30)});
  if (!server) die(server.error().text());
  const std::string where = (*server)->addresses().front();
  std::fflush(stdout);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto begun = Clock::now();
    Crowd crowd(where, count);
    crowd.until([](const auto& member) { return member->whole(); });
    const double formed = since(begun);
    const auto start = Clock::now();
    constexpr std::uint64_t kRounds = 5;
    for (std::uint64_t round = 1; round <= kRounds; ++round) {
      for (auto& member : crowd.members()) member->gather();
      crowd.until([round](const auto& member) { return member->rounds() >= round; });
    }
    const double barrier = since(start) / kRounds;
    fmt::print("{:>6} {:>10.0f} {:>10.1f} {:>11.1f} {:>9.0f} {:>11.2f} {:>10.1f}", count, formed,
               formed * 1000 / count, static_cast<double>(crowd.rosterBytes()) / 1024,
               crowd.readRoster(), barrier, barrier * 1000 / count);
    std::fflush(stdout);
    std::array<char, 1> wait{};
    std::_Exit(::read(STDIN_FILENO, wait.data(), 0) == 0 ? 0 : 1);
  }
  const std::uint64_t before = residentKiB();
  const double cpu_before = cpuMicroseconds();
  std::uint64_t most = before;
  double server_cpu = 0;
  while (::waitpid(child, nullptr, WNOHANG) == 0) {
    if (server_cpu == 0 && (*server)->counts().groups == 1) server_cpu = cpuMicroseconds();
    most = std::max(most, residentKiB());
    ::usleep(2'000);
  }
  const auto counts = (*server)->counts();
  // On a busy machine the poll may have missed the moment at which the group was complete.
  const std::string server_us =
      server_cpu == 0 ? "-" : fmt::format("{:.1f}", (server_cpu - cpu_before) / count);
  fmt::print(" {:>10} {:>11.1f} {:>10.2f}\n", server_us,
             static_cast<double>(counts.received + counts.sent) / count,
             static_cast<double>(most - before) / count);
}

}  // namespace

int main(int argc, char** argv) {
  const auto number = [&](int at, unsigned otherwise) {
    return argc > at ? static_cast<unsigned>(std::strtoul(argv[at], nullptr, 10)) : otherwise;
  };
  manyProcesses(number(1, 64), static_cast<int>(number(2, 100)));
  fmt::print(
      "\nmembers played by one process:\n{:>6} {:>10} {:>10} {:>11} {:>9} {:>11} {:>10} {:>10} "
      "{:>11} {:>10}\n",
      "", "formed ms", "us/member", "roster KiB", "read us", "barrier ms", "us/member", "server us",
      "msgs/member", "KiB/member");
  for (std::uint32_t count = 256; count <= number(3, 4096); count *= 4) simulated(count);
}
