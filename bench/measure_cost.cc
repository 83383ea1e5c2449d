// The cost of measuring, turn by turn in one run: transfers timed as by `viaduct bench`, beside a
// bare loop that posts the same transfer and waits. Also filling and checking contents, beside
// copies of as many bytes. Usage: measure_cost [rounds [milliseconds a turn]]
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <viaduct/viaduct.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "measure/lane/lane.h"
#include "measure/load/buffer.h"
#include "measure/load/pattern.h"
#include "median.h"

namespace viaduct::measure {
namespace {

constexpr std::uint64_t kBytes = std::uint64_t{64} << 20U;
constexpr const char* kLabel = "cost";

template <class T>
T must(Result<T> result) {
  if (!result) {
    fmt::print(stderr, "measure_cost: {}\n", result.error().text());
    std::exit(1);
  }
  return *std::move(result);
}

Agent openAgent(const char* name, const std::string& backend) {
  Settings settings;
  settings.name = name;
  settings.backends = {backend};
  settings.copy_threads = 1;  // as many as check contents
  return must(Agent::open(settings));
}

[[noreturn]] void target(int socket, const std::string& backend) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  Agent agent = openAgent("target", backend);
  const Buffer memory = must(Buffer::make(agent, kBytes, {}, kLabel));
  const auto card = agent.exportCard();
  if (::send(socket, card.data(), card.size(), 0) < 0) std::exit(1);
  char over = 0;
  static_cast<void>(::recv(socket, &over, 1, 0));  // waits until the other end closes
  ::_exit(0);
}

double seconds(Duration time) { return std::chrono::duration<double>(time).count(); }

std::string show(const std::vector<double>& values) {
  auto sorted = values;
  std::ranges::sort(sorted);
  return fmt::format("{:.3f} ({:.3f}..{:.3f})", median(values), sorted[sorted.size() / 10],
                     sorted[sorted.size() * 9 / 10]);
}

// Microseconds per transfer.
double bare(Transfer& transfer, Duration length) {
  std::uint64_t count = 0;
  const auto start = Clock::now();
  for (auto now = start; now - start < length; now = Clock::now(), ++count) {
    must(transfer.post());
    must(transfer.wait());
  }
  return 1e6 * seconds(Clock::now() - start) / static_cast<double>(count);
}

double timed(Lane& lane, Duration length) {
  const Orders orders{Order::kGoOn};
  const LaneTimes times = must(lane.run({.iterations = 10, .time = length}, orders));
  double all = 0;
  for (const auto& part : times.parts) all += part.seconds;
  return 1e6 * all / static_cast<double>(times.iterations);
}

void row(Agent& agent, const Peer& peer, Buffer& memory, const Spec& spec, const Workload& load,
         int rounds, Duration length) {
  const NoteSource notes = [&agent](Deadline until) { return agent.waitNote(until); };
  const auto remote = must(peer.waitPin(kLabel, std::chrono::seconds(10))).address;
  const auto blocks = [&](std::uint64_t at) {
    return must(Blocks::strided({.base = at, .bytes = load.block_bytes, .count = load.batch}));
  };
  const LaneSeed seed{.spec = spec,
                      .row = load,
                      .agent = agent,
                      .peer = peer,
                      .notes = notes,
                      .memory = memory,
                      .remote = [&](std::uint64_t) { return blocks(remote); }};
  const auto lane = must(Lane::plan(seed));
  Transfer transfer = must(agent.plan(
      load.op, peer, {blocks(memory.address()), blockOrder(load.batch, spec.seed, seed.role)},
      {blocks(remote), blockOrder(load.batch, spec.seed, Role::kTarget)}));
  std::vector<double> loop, tool, ratio;
  for (int round = 0; round <= rounds; ++round) {
    const double without = bare(transfer, length);
    const double with = timed(*lane, length);
    if (round == 0) continue;  // the first round warms up both ways
    loop.push_back(without);
    tool.push_back(with);
    ratio.push_back(with / without);
  }
  fmt::print("{:<6} {:>9} x {:<5} {:>28} {:>28} {:>24}\n", load.backend, load.block_bytes,
             load.batch, show(loop), show(tool), show(ratio));
}

void contents(Agent& agent, const Peer& peer, Buffer& memory, std::uint64_t block, int rounds) {
  const Pattern pattern{.seed = 1, .block_bytes = block, .blocks = kBytes / block, .epoch = 1};
  const auto each = [&](auto work) {
    const auto start = Clock::now();
    for (std::uint64_t k = 0; k < pattern.blocks; ++k)
      work(memory.bytes().subspan(k * block, block), k);
    return 1e3 * seconds(Clock::now() - start);
  };
  const auto all = [&](std::uint64_t at) {
    return must(Blocks::strided({.base = at, .bytes = block, .count = pattern.blocks}));
  };
  const std::uint64_t remote = must(peer.waitPin(kLabel, std::chrono::seconds(10))).address;
  Transfer transfer =
      must(agent.plan(OpKind::kWrite, peer, {all(memory.address()), {}}, {all(remote), {}}));
  std::vector<double> copy, fill, verify, ratio;
  for (int round = 0; round <= rounds; ++round) {
    const double filled = each([&](auto bytes, std::uint64_t k) { pattern.fill(bytes, k); });
    const auto start = Clock::now();
    must(transfer.post());
    must(transfer.wait());
    const double copied = 1e3 * seconds(Clock::now() - start);
    const double verified = each([&](auto bytes, std::uint64_t k) {
      if (pattern.verify(bytes, k)) std::exit(1);
    });
    if (round == 0) continue;
    copy.push_back(copied);
    fill.push_back(filled);
    verify.push_back(verified);
    ratio.push_back(verified / copied);
  }
  fmt::print("{:>9} {:>26} {:>26} {:>26} {:>26}\n", block, show(copy), show(fill), show(verify),
             show(ratio));
}

int run(int rounds, Duration length) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  for (const std::string backend : {"local", "tcp"}) {
    std::array<int, 2> sockets{};
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets.data()) != 0) return 1;
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::close(sockets[0]);
      target(sockets[1], backend);
    }
    ::close(sockets[1]);
    {
      Agent agent = openAgent("initiator", backend);
      std::vector<std::byte> card(65536);
      const ssize_t got = ::recv(sockets[0], card.data(), card.size(), 0);
      if (got <= 0) return 1;
      const Peer peer =
          must(agent.importCard(std::span(card).first(static_cast<std::size_t>(got))));
      must(peer.ready(std::chrono::seconds(10)));
      Buffer memory = must(Buffer::make(agent, kBytes, {}, ""));
      const Spec spec;
      fmt::print("{:<22} {:>28} {:>28} {:>24}\n", "us a transfer", "bare loop", "timed", "ratio");
      for (const auto& [block, batch] :
           {std::pair<std::uint64_t, std::uint32_t>{8, 1}, {4096, 64}, {65536, 64}, {kBytes, 1}})
        row(agent, peer, memory, spec, {.backend = backend, .block_bytes = block, .batch = batch},
            rounds, length);
      if (backend == "local") {
        fmt::print("\n{:<9} {:>26} {:>26} {:>26} {:>26}\n", "64 MiB in", "copy, ms", "fill",
                   "verify", "verify to copy");
        for (const std::uint64_t block : {64ULL << 10, 1ULL << 20, 64ULL << 20})
          contents(agent, peer, memory, block, rounds);
        fmt::print("\n");
      }
    }
    ::close(sockets[0]);
    ::waitpid(pid, nullptr, 0);
  }
  return 0;
}

}  // namespace
}  // namespace viaduct::measure

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 11;
  const int turn_ms = argc > 2 ? std::atoi(argv[2]) : 100;
  return viaduct::measure::run(std::max(rounds, 1), std::chrono::milliseconds(turn_ms));
}
