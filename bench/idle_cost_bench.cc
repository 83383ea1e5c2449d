// What an agent costs that does nothing, and how soon a fresh one has moved its first bytes. Every
// figure is taken in processes of their own, forked before any agent is opened.
//   idle_cost_bench [PEERS] [SECONDS]
// VIADUCT_* are heard where memory is measured: VIADUCT_BACKENDS=ofi
// VIADUCT_RAILS=127.0.0.1,127.0.0.2 says what a peer costs over two rails of ofi.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <viaduct/viaduct.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"

namespace {

using namespace std::chrono_literals;
using namespace viaduct;
using viaduct::base::Fd;

constexpr std::uint64_t kBytes = 4096;
constexpr std::size_t kRounds = 21;

// A process that runs `body` with a pipe to write to and one to read from.
class Child {
 public:
  explicit Child(const std::function<Status(int in, int out)>& body) {
    std::array<int, 2> down{};
    std::array<int, 2> up{};
    if (::pipe(down.data()) != 0 || ::pipe(up.data()) != 0) std::abort();
    std::fflush(stdout);
    pid_ = ::fork();
    Fd child_in(down[0]), child_out(up[1]);
    to_.reset(down[1]);
    from_.reset(up[0]);
    if (pid_ != 0) return;
    to_.reset();
    from_.reset();
    const Status done = body(child_in.get(), child_out.get());
    if (!done) std::fprintf(stderr, "%s\n", done.error().text().c_str());
    ::_exit(done ? 0 : 1);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    to_.reset();
    ::waitpid(pid_, nullptr, 0);
  }
  int in() const { return from_.get(); }
  int out() const { return to_.get(); }

 private:
  pid_t pid_ = -1;
  Fd to_, from_;
};

// Length-prefixed messages over a pipe; empty at its end.
void put(int fd, std::span<const std::byte> bytes) {
  const std::uint64_t size = bytes.size();
  if (::write(fd, &size, sizeof(size)) < 0 || ::write(fd, bytes.data(), bytes.size()) < 0)
    std::abort();
}
std::vector<std::byte> get(int fd) {
  std::uint64_t size = 0;
  if (::read(fd, &size, sizeof(size)) != sizeof(size)) return {};
  std::vector<std::byte> bytes(size);
  for (std::size_t at = 0; at < size;) {
    const ssize_t got = ::read(fd, bytes.data() + at, size - at);
    if (got <= 0) return {};
    at += static_cast<std::size_t>(got);
  }
  return bytes;
}
template <class T>
void putValue(int fd, const T& value) {
  put(fd, std::as_bytes(std::span(&value, 1)));
}
template <class T>
T getValue(int fd) {
  const auto bytes = get(fd);
  T value{};
  if (bytes.size() == sizeof(T)) std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

Settings with(const std::string& backend) {
  Settings settings;
  if (!backend.empty()) settings.backends = {backend};
  return settings;
}

double residentKib() {
  std::ifstream statm("/proc/self/statm");
  double size = 0;
  double resident = 0;
  statm >> size >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE)) / 1024;
}

double milliseconds(Clock::duration d) { return std::chrono::duration<double>(d).count() * 1e3; }

// An agent with memory "inbox" that lives until its stdin ends.
Status serve(const std::string& backend, int in, int out) {
  VIADUCT_TRY(auto agent, Agent::open(with(backend)));
  VIADUCT_TRY(auto inbox, agent.allocate(kBytes, {.label = "inbox"}));
  put(out, agent.exportCard());
  get(in);
  return Ok{};
}

struct FirstTransfer {
  double open = 0, connect = 0, transfer = 0;
};

Status visit(const std::string& backend, int in, int out) {
  const auto card = get(in);
  const auto start = Clock::now();
  VIADUCT_TRY(auto agent, Agent::open(with(backend)));
  VIADUCT_TRY(auto memory, agent.allocate(kBytes));
  const auto opened = Clock::now();
  VIADUCT_TRY(auto peer, agent.importCard(card));
  VIADUCT_CHECK(peer.ready(10s));
  const auto ready = Clock::now();
  VIADUCT_TRY(auto inbox, peer.waitPin("inbox", 10s));
  VIADUCT_TRY(auto here,
              Blocks::strided({.base = memory.info().address, .bytes = kBytes, .count = 1}));
  VIADUCT_TRY(auto there, Blocks::strided({.base = inbox.address, .bytes = kBytes, .count = 1}));
  VIADUCT_TRY(auto transfer, agent.plan(OpKind::kWrite, peer, {here}, {there}));
  VIADUCT_CHECK(transfer.post());
  VIADUCT_CHECK(transfer.wait(10s));
  putValue(out, FirstTransfer{.open = milliseconds(opened - start),
                              .connect = milliseconds(ready - opened),
                              .transfer = milliseconds(Clock::now() - ready)});
  return Ok{};
}

void firstTransfers(const std::string& backend) {
  std::vector<double> connect, total;
  std::vector<FirstTransfer> all;
  for (std::size_t i = 0; i < kRounds; ++i) {
    const Child server([&](int in, int out) { return serve(backend, in, out); });
    const auto card = get(server.in());
    const Child client([&](int in, int out) { return visit(backend, in, out); });
    put(client.out(), card);
    all.push_back(getValue<FirstTransfer>(client.in()));
  }
  const auto row = [&](const char* what, double FirstTransfer::* part) {
    std::vector<double> values;
    for (const FirstTransfer& one : all) values.push_back(one.*part);
    std::sort(values.begin(), values.end());
    std::printf("%-6s %-34s %8.2f %8.2f %8.2f ms\n", backend.c_str(), what, values[kRounds / 2],
                values.front(), values.back());
  };
  row("open an agent, allocate", &FirstTransfer::open);
  row("connect, until ready", &FirstTransfer::connect);
  row("plan and first transfer", &FirstTransfer::transfer);
}

Settings named(std::string name) {
  auto settings = settingsFromEnvironment();
  if (!settings) std::abort();
  settings->name = std::move(name);
  return *std::move(settings);
}

// The hub says how large it is, each time it is asked; its peers are agents of one other process.
Status hub(int in, int out) {
  const double bare = residentKib();
  VIADUCT_TRY(auto agent, Agent::open(named("hub")));
  put(out, agent.exportCard());
  while (!get(in).empty()) putValue(out, residentKib() - bare);
  return Ok{};
}

Status crowd(int in, int out) {
  const auto card = get(in);
  std::vector<Agent> agents;
  for (;;) {
    const auto wanted = getValue<std::uint64_t>(in);
    if (wanted == 0) return Ok{};
    while (agents.size() < wanted) {
      VIADUCT_TRY(auto agent, Agent::open(named("peer" + std::to_string(agents.size()))));
      VIADUCT_TRY(auto peer, agent.importCard(card));
      VIADUCT_CHECK(peer.ready(10s));
      agents.push_back(std::move(agent));
    }
    putValue(out, wanted);
  }
}

void memoryOfPeers(std::uint64_t peers) {
  const Child center(hub);
  const auto card = get(center.in());
  const Child others(crowd);
  put(others.out(), card);
  const auto sizeWith = [&](std::uint64_t count) {
    putValue(others.out(), count);
    if (getValue<std::uint64_t>(others.in()) != count) std::exit(1);  // it has said why
    putValue(center.out(), count);
    return getValue<double>(center.in());
  };
  double before = sizeWith(1);
  std::printf("an agent with one peer: %.0f KiB resident\n", before);
  std::uint64_t there = 1;
  for (const std::uint64_t quarter : {1, 2, 3, 4}) {
    const std::uint64_t count = 1 + peers * quarter / 4;
    if (count == there) continue;
    const double now = sizeWith(count);
    std::printf("  each of the peers %llu to %llu: %.1f KiB\n",
                static_cast<unsigned long long>(there + 1), static_cast<unsigned long long>(count),
                (now - before) / static_cast<double>(count - there));
    before = now;
    there = count;
  }
  putValue(others.out(), std::uint64_t{0});
}

struct Idle {
  double cpu_ms = 0, switches = 0;
};

Idle usage() {
  rusage self{};
  ::getrusage(RUSAGE_SELF, &self);
  const auto ms = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_usec) / 1e3;
  };
  return {ms(self.ru_utime) + ms(self.ru_stime), static_cast<double>(self.ru_nvcsw)};
}

// One of two connected agents, that sleeps in a wait of its own.
Status idle(std::chrono::seconds seconds, int in, int out) {
  VIADUCT_TRY(auto agent, Agent::open({}));
  put(out, agent.exportCard());
  if (const auto card = get(in); card.size() > 1) {
    VIADUCT_TRY(auto peer, agent.importCard(card));
    VIADUCT_CHECK(peer.ready(10s));
  }
  const Idle before = usage();
  static_cast<void>(agent.waitNote(seconds));
  const Idle after = usage();
  putValue(out, Idle{after.cpu_ms - before.cpu_ms, after.switches - before.switches});
  get(in);
  return Ok{};
}

void idleCost(std::chrono::seconds seconds) {
  const auto body = [&](int in, int out) { return idle(seconds, in, out); };
  const Child one(body);
  const auto card = get(one.in());
  const Child two(body);
  get(two.in());
  put(two.out(), card);
  put(one.out(), std::array{std::byte{0}});  // no card: it is dialed
  for (const Child* child : {&one, &two}) {
    const Idle cost = getValue<Idle>(child->in());
    std::printf("idle for %lld s: %.2f ms CPU, %.0f voluntary context switches\n",
                static_cast<long long>(seconds.count()), cost.cpu_ms, cost.switches);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t peers = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 200;
  const std::chrono::seconds seconds(argc > 2 ? std::atoi(argv[2]) : 10);
  std::printf("two fresh processes, %zu times%19s median      min      max\n", kRounds, "");
  for (const char* backend : {"local", "tcp"}) firstTransfers(backend);
  memoryOfPeers(peers);
  idleCost(seconds);
  return 0;
}
