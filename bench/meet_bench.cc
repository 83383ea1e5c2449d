// The cost of meeting at the embedded place: 64 processes of this machine, and thousands of members
// that one process simulates.   meet_bench [processes [rounds [members]]]
#include <sys/epoll.h>
#include <sys/wait.h>

#include <list>
#include <memory>

#include "base/net/address.h"
#include "harness/processes.h"
#include "meet/embedded/message_socket.h"
#include "meet/groups/group_messages.h"
#include "meet/groups/server.h"

namespace {

using namespace viaduct;
using namespace viaduct::bench;
using namespace viaduct::meet;
using std::chrono::seconds;

const StopFlag kGoOn{false};

// One of the processes. Rank 0 prints the figures.
void member(const std::string& where, std::uint32_t size, int rounds) {
  const auto place = must(openGroupPlace({.where = where, .token = "bench"}));
  const auto came = Clock::now();
  const auto group =
      must(place->join({.size = size, .name = std::to_string(::getpid())}, seconds(60), kGoOn));
  const double joined = secondsSince(came);
  const std::string value(100, 'v');
  const auto gather = [&](const std::string& mine) {
    return 1e3 * secondsOf([&] { must(group->gather(mine, seconds(60), kGoOn)); });
  };
  const auto [barrier, gathered] =
      inTurns({rounds, 1}, {[&](int) { return gather(""); }, [&](int) { return gather(value); }});
  if (group->roster().rank == 0) {
    fmt::print("{} processes: join {:.1f} ms (rank 0, from its start to whole)\n", size,
               1e3 * joined);
    Table table({words("", 17), figure("median, ms", 2), figure("p90", 2), figure("max", 2)});
    table.row("  barrier", barrier, barrier.quantile(0.9), barrier.most());
    table.row("  gather of 100 B", gathered, gathered.quantile(0.9), gathered.most());
  }
  must(group->finish(seconds(60)));
}

// Forks the processes before the server starts its thread.
void manyProcesses(std::uint32_t count, int rounds) {
  auto listening = must(EmbeddedServer::listen("127.0.0.1:0"));
  const std::string where = base::localAddress(listening.get())->text();
  std::list<Child> processes;
  for (std::uint32_t i = 0; i < count; ++i)
    processes.emplace_back([&](Channel&) { member(where, count, rounds); });
  const auto server =
      must(EmbeddedServer::start({.listening = std::move(listening), .token = "bench"}));
  processes.clear();
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
    must(::connect(socket.get(), address.get(), address.size), "connect");
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
      auto step = must(handshake_.take(base::Handshake::Stage::kChallenge, payload, 0));
      send(Type::kProof, step.reply);
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
  // Microseconds that a member spends on the roster.
  double readRoster() const {
    return inTurns({21}, {[&](int) {
                     return 1e6 *
                            secondsOf([&] { must(base::decode<groups::FormedMessage>(roster_)); });
                   }})[0]
        .median();
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

// The figures of the process that plays the members, in milliseconds, bytes, and microseconds.
struct Played {
  double formed = 0, barrier = 0, roster_bytes = 0, roster_us = 0;
};

Played play(const std::string& where, std::uint32_t count) {
  const auto begun = Clock::now();
  Crowd crowd(where, count);
  crowd.until([](const auto& member) { return member->whole(); });
  const double formed = 1e3 * secondsSince(begun);
  const auto start = Clock::now();
  constexpr std::uint64_t kRounds = 5;
  for (std::uint64_t round = 1; round <= kRounds; ++round) {
    for (auto& member : crowd.members()) member->gather();
    crowd.until([round](const auto& member) { return member->rounds() >= round; });
  }
  return {formed, 1e3 * secondsSince(start) / kRounds, static_cast<double>(crowd.rosterBytes()),
          crowd.readRoster()};
}

void simulated(Table& table, std::uint32_t count) {
  // `detect` is 30 s, because this one process plays all members and must not count as frozen.
  const auto server = must(EmbeddedServer::start({.token = "bench", .detect = seconds(30)}));
  const std::string where = server->addresses().front();
  const Child players([&](Channel& parent) { parent.sendValue(play(where, count)); });
  const double before = residentKiB(), cpu_before = processorSeconds();
  double most = before, server_seconds = 0;
  while (!players.ended()) {
    if (server_seconds == 0 && server->counts().groups == 1)
      server_seconds = processorSeconds() - cpu_before;
    most = std::max(most, residentKiB());
    ::usleep(2'000);
  }
  const auto played = players.receiveValue<Played>();
  const auto counts = server->counts();
  // On a busy machine the poll may have missed the moment at which the group was complete.
  const std::string server_us =
      server_seconds == 0 ? "-" : fmt::format("{:.1f}", 1e6 * server_seconds / count);
  table.row(count, played.formed, played.formed * 1000 / count, played.roster_bytes / 1024,
            played.roster_us, played.barrier, played.barrier * 1000 / count, server_us,
            static_cast<double>(counts.received + counts.sent) / count, (most - before) / count);
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments given(argc, argv, "meet_bench [PROCESSES [ROUNDS [MEMBERS]]]");
  manyProcesses(given.number(0, 64U), given.number(1, 100));
  fmt::print("\nmembers played by one process:\n");
  Table table({figure("members", 0), figure("formed ms", 0), figure("us/member", 1),
               figure("roster KiB", 1), figure("read us", 0), figure("barrier ms", 2),
               figure("us/member", 1), figure("server us", 1), figure("msgs/member", 1),
               figure("KiB/member", 2)});
  for (std::uint32_t count = 256; count <= given.number(2, 4096U); count *= 4)
    simulated(table, count);
}
