// The local backend beside bare loops over the same kind of memory, interleaved in one run: what
// docs/measured/local.md is made of. Two processes; the other one only owns memory.
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "backends/local/process_pair_testing.h"
#include "backends/local/wide_copy.h"
#include "base/shared_memory.h"

namespace {

using namespace viaduct;
using local::testing::Child;
using local::testing::Station;

constexpr std::uint64_t kArena = std::uint64_t{512} << 20U;
constexpr std::uint64_t kBlock = 4096;
constexpr std::uint32_t kShared = 1, kPlain = 2;

struct Sample {
  std::string name;
  std::function<void(int round)> run;
  std::vector<double> wall = {}, cpu = {};
};

constexpr int kWarmUp = 8;  // touches every block of every set once

double cpuNow() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

double quantile(const std::vector<double>& sorted, double p) {
  return sorted[static_cast<std::size_t>(p * static_cast<double>(sorted.size() - 1))];
}

// Runs every sample once per round, in turn, so that the machine's moods hit all alike. Ratios are
// to the first sample. CPU time is this process's, so that a busy machine can still be read.
void measure(const std::string& title, double divide, const char* unit, int rounds,
             std::vector<Sample> samples) {
  for (int round = -kWarmUp; round < rounds; ++round)
    for (Sample& sample : samples) {
      const double cpu = cpuNow();
      const auto start = Clock::now();
      sample.run(round + kWarmUp);
      const std::chrono::duration<double, std::nano> took = Clock::now() - start;
      if (round < 0) continue;
      sample.wall.push_back(took.count() / divide);
      sample.cpu.push_back((cpuNow() - cpu) / divide);
    }
  std::printf("%s (%d rounds, %s)\n", title.c_str(), rounds, unit);
  std::printf("  %-28s %9s %9s %9s %9s %7s %7s %9s %7s\n", "", "median", "best", "p10", "p90",
              "ratio", "of best", "cpu", "ratio");
  double floor = 0, floor_best = 0, floor_cpu = 0;
  for (Sample& sample : samples) {
    std::ranges::sort(sample.wall);
    std::ranges::sort(sample.cpu);
    const double median = quantile(sample.wall, 0.5), best = sample.wall.front();
    const double cpu = quantile(sample.cpu, 0.5);
    if (floor == 0) floor = median, floor_best = best, floor_cpu = cpu;
    std::printf("  %-28s %9.1f %9.1f %9.1f %9.1f %7.3f %7.3f %9.1f %7.3f\n", sample.name.c_str(),
                median, best, quantile(sample.wall, 0.1), quantile(sample.wall, 0.9),
                median / floor, best / floor_best, cpu, cpu / floor_cpu);
  }
  std::fflush(stdout);
}

// What one side of a copy names: block numbers of both arenas.
struct Pairs {
  std::vector<std::uint64_t> here, there;
};
// Block numbers of `span` bytes at random places; a different `part` shares none of them.
Pairs scattered(std::size_t count, std::uint64_t span, std::size_t part) {
  const auto pick = [&](unsigned seed) {
    std::vector<std::uint64_t> all(span / kBlock);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = i * kBlock;
    std::ranges::shuffle(all, std::mt19937_64(seed));
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(part * count);
    return std::vector(first, first + static_cast<std::ptrdiff_t>(count));
  };
  return {pick(1), pick(2)};
}

std::byte* arena() {
  void* start = ::mmap(nullptr, kArena, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  return static_cast<std::byte*>(start);
}
std::byte* plainArena() {
  auto* start = static_cast<std::byte*>(std::malloc(kArena));
  std::memset(start, 1, kArena);
  return start;
}

bool ownMemory(int socket, int pid) {
  Settings settings;
  settings.copy_threads = 1;
  Station station(socket, pid, settings);
  auto shared = *base::SharedMemory::allocate(kArena);
  std::memset(shared.data(), 1, kArena);
  std::byte* plain = plainArena();
  station.pin(kShared, shared.segment());
  station.pin(kPlain, Segment::host(plain, kArena));
  station.hears("go on");
  while (!station.run([&] { return !station.said.empty(); })) ::usleep(1000);
  return true;
}

std::vector<core::Op> opsOf(const Pairs& pairs, const std::byte* here, std::uint64_t there,
                            std::uint32_t pin, std::uint64_t bytes = kBlock) {
  std::vector<core::Op> ops;
  for (std::size_t i = 0; i < pairs.here.size(); ++i)
    ops.push_back({reinterpret_cast<std::uintptr_t>(here) + pairs.here[i], there + pairs.there[i],
                   bytes, pin, pin});
  return ops;
}

void transfer(Station& station, std::span<const core::Op> ops) {
  station.done.clear();
  station.post(OpKind::kWrite, ops);
  while (station.done.empty()) station.rail().poll(station.done);
  if (!std::holds_alternative<core::Moved>(station.done.front())) {
    std::printf("%s\n", std::get<core::Failed>(station.done.front()).why.text().c_str());
    std::exit(1);
  }
}

void plainLoop(const Pairs& pairs, const std::byte* from, std::byte* to) {
  for (std::size_t i = 0; i < pairs.here.size(); ++i)
    std::memcpy(to + pairs.there[i], from + pairs.here[i], kBlock);
}
void wideLoop(const Pairs& pairs, const std::byte* from, std::byte* to) {
  for (std::size_t i = 0; i < pairs.here.size(); ++i)
    local::copyWide(to + pairs.there[i], from + pairs.here[i], kBlock);
  local::finishWide();
}
void cmaLoop(int pid, const Pairs& pairs, const std::byte* from, std::uint64_t to) {
  std::array<iovec, 1024> here, there;
  for (std::size_t first = 0; first < pairs.here.size(); first += here.size()) {
    const std::size_t count = std::min(here.size(), pairs.here.size() - first);
    for (std::size_t i = 0; i < count; ++i) {
      here[i] = {const_cast<std::byte*>(from + pairs.here[first + i]), kBlock};
      there[i] = {local::pointerTo(to + pairs.there[first + i]), kBlock};
    }
    if (::process_vm_writev(pid, here.data(), count, there.data(), count, 0) !=
        static_cast<ssize_t>(count * kBlock))
      std::perror("process_vm_writev"), std::exit(1);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 15;
  std::byte* bare_to = arena();
  Child owner_a(ownMemory);
  Child owner_b(ownMemory);
  Settings one, two;
  one.copy_threads = 1;
  two.copy_threads = 2;
  Station alone(owner_a.socket(), owner_a.pid(), one);
  Station both(owner_b.socket(), owner_b.pid(), two);
  auto shared = *base::SharedMemory::allocate(kArena);
  std::memset(shared.data(), 2, kArena);
  std::byte* plain = plainArena();
  for (Station* station : {&alone, &both}) {
    if (!station->backend().pin(kShared, shared.segment()) ||
        !station->backend().pin(kPlain, Segment::host(plain, kArena)) ||
        !station->reaches(kShared, kShared, "mapped") || !station->reaches(kPlain, kPlain, "cma"))
      return std::printf("no way: %s\n", station->link().state().text.c_str()), 1;
  }
  const auto address = [](Station& station, std::uint32_t pin) {
    return station.pins[pin - 1].info.address;
  };
  std::printf("local floor; wide copies by %s\n", local::wideCopyName());

  {
    const Pairs pairs = scattered(64, kArena / 2, 0);
    const auto ops = opsOf(pairs, shared.data(), address(alone, kShared), kShared);
    constexpr int kTimes = 200;
    measure("64 warm scattered 4 KiB blocks", 64.0 * kTimes, "ns a block", rounds * 4,
            {{"memcpy loop",
              [&](int) {
                for (int i = 0; i < kTimes; ++i) plainLoop(pairs, shared.data(), bare_to);
              }},
             {"local, mapped", [&](int) {
                for (int i = 0; i < kTimes; ++i) transfer(alone, ops);
              }}});
  }
  {
    std::vector<Pairs> sets;
    for (std::size_t i = 0; i < 8; ++i) sets.push_back(scattered(16384, kArena, i));
    std::vector<std::vector<core::Op>> a, b, pa, pb;
    for (const Pairs& pairs : sets) {
      a.push_back(opsOf(pairs, shared.data(), address(alone, kShared), kShared));
      b.push_back(opsOf(pairs, shared.data(), address(both, kShared), kShared));
      pa.push_back(opsOf(pairs, plain, address(alone, kPlain), kPlain));
      pb.push_back(opsOf(pairs, plain, address(both, kPlain), kPlain));
    }
    const auto set = [](int round) { return static_cast<std::size_t>(round) % 8; };
    measure("16,384 x 4 KiB over 512 MiB", 16384, "ns a block", rounds,
            {{"memcpy loop", [&](int r) { plainLoop(sets[set(r)], shared.data(), bare_to); }},
             {"non-temporal loop", [&](int r) { wideLoop(sets[set(r)], shared.data(), bare_to); }},
             {"local, mapped, 1 thread", [&](int r) { transfer(alone, a[set(r)]); }},
             {"local, mapped, 2 threads", [&](int r) { transfer(both, b[set(r)]); }}});
    measure("16,384 x 4 KiB, plain memory", 16384, "ns a block", rounds,
            {{"process_vm_writev loop",
              [&](int r) { cmaLoop(owner_a.pid(), sets[set(r)], plain, address(alone, kPlain)); }},
             {"local, cma, 1 thread", [&](int r) { transfer(alone, pa[set(r)]); }},
             {"local, cma, 2 threads", [&](int r) { transfer(both, pb[set(r)]); }}});
  }
  for (const std::uint64_t bytes :
       {std::uint64_t{1} << 20U, std::uint64_t{2} << 20U, std::uint64_t{4} << 20U,
        std::uint64_t{8} << 20U, std::uint64_t{64} << 20U}) {
    const auto at = [=](int round) { return static_cast<std::uint64_t>(round) * bytes % kArena; };
    const auto whole = [&](Station& station, int round) {
      const core::Op op{reinterpret_cast<std::uintptr_t>(shared.data()) + at(round),
                        address(station, kShared) + at(round), bytes, kShared, kShared};
      transfer(station, {&op, 1});
    };
    measure(fmt::format("one block of {} MiB", bytes >> 20U), 1000, "us", rounds,
            {{"memcpy", [&](int r) { std::memcpy(bare_to + at(r), shared.data() + at(r), bytes); }},
             {"non-temporal",
              [&](int r) {
                local::copyWide(bare_to + at(r), shared.data() + at(r), bytes);
                local::finishWide();
              },
              {}},
             {"local, mapped, 1 thread", [&](int r) { whole(alone, r); }},
             {"local, mapped, 2 threads", [&](int r) { whole(both, r); }}});
  }
  {
    const core::Op op{reinterpret_cast<std::uintptr_t>(shared.data()), address(alone, kShared), 8,
                      kShared, kShared};
    const core::Op far{reinterpret_cast<std::uintptr_t>(plain), address(alone, kPlain), 8, kPlain,
                       kPlain};
    measure("one 8-byte write, post to done", 1, "ns", rounds * 1000,
            {{"mapped", [&](int) { transfer(alone, {&op, 1}); }},
             {"cma", [&](int) { transfer(alone, {&far, 1}); }}});
  }
  return 0;
}
