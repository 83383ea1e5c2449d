// Random reads or writes of one file by an agent, for a comparison with fio (bench/file_floor.py).
// Prints one line of JSON: bytes per second, I/Os per second, and the processor time of this
// process, with all of its threads.
//   file_bench FILE read|write BLOCK BLOCKS_PER_TRANSFER TRANSFERS SECONDS [ENGINE [MEMORY]]
// Keeps TRANSFERS transfers posted, each of random blocks of the file. Host memory is that of
// Agent::allocate, or the file MEMORY. The latter is mapped several times if it is smaller than all
// blocks, so that the bench can share the pages of another program. The threads sleep while nothing
// has ended.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <viaduct/viaduct.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "must.h"

namespace {

using namespace std::chrono_literals;
using viaduct::OpKind;

struct Options {
  std::string file;
  OpKind kind = OpKind::kRead;
  std::uint64_t block = 0;
  std::uint32_t blocks = 0, transfers = 0;
  double seconds = 0;
  std::string engine = "auto";
  std::string memory;  // a file; empty: allocated
};

double processorSeconds() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

viaduct::Pin pinnedMemory(viaduct::Agent& agent, std::uint64_t bytes, const std::string& file) {
  if (file.empty()) return must(agent.allocate(bytes, {.label = "memory"}));
  const int fd = ::open(file.c_str(), O_RDWR | O_CLOEXEC);
  struct stat facts{};
  if (fd < 0 || ::fstat(fd, &facts) != 0 || facts.st_size == 0) std::abort();
  const auto size = static_cast<std::uint64_t>(facts.st_size);
  // Room up to the next multiple of the file's size, and of a huge page before it.
  constexpr std::uint64_t kHugePage = std::uint64_t{2} << 20U;
  const std::uint64_t mapped = (bytes + size - 1) / size * size;
  void* const room =
      ::mmap(nullptr, mapped + kHugePage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) std::abort();
  std::byte* memory = static_cast<std::byte*>(room);
  memory += kHugePage - reinterpret_cast<std::uintptr_t>(memory) % kHugePage;
  for (std::uint64_t at = 0; at < mapped; at += size)
    if (::mmap(memory + at, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd,
               0) == MAP_FAILED)
      std::abort();
  ::close(fd);
  return must(agent.pin(viaduct::Segment::host(memory, bytes), "memory"));
}

viaduct::Selection randomBlocks(const viaduct::Pin& file, const Options& o, std::mt19937_64& dice) {
  const std::uint64_t count = file.size() / o.block;
  viaduct::Indices indices;
  std::vector<bool> taken(count);
  while (indices.size() < o.blocks) {
    const auto one = static_cast<std::uint32_t>(dice() % count);
    if (!taken[one]) indices.push_back(one);
    taken[one] = true;
  }
  return {.blocks = must(viaduct::Blocks::strided(
              {.base = file.info().address, .bytes = o.block, .count = count})),
          .indices = std::move(indices)};
}

void run(const Options& o) {
  viaduct::Settings settings{.name = "bench", .listen = {}, .backends = {"file"}};
  settings.others["VIADUCT_FILE_ENGINE"] = o.engine;
  if (const char* spin = std::getenv("VIADUCT_SPIN"))
    settings.spin = std::chrono::microseconds(std::stol(spin));
  if (const char* depth = std::getenv("VIADUCT_FILE_QUEUE_DEPTH"))
    settings.others["VIADUCT_FILE_QUEUE_DEPTH"] = depth;
  viaduct::Agent agent = must(viaduct::Agent::open(settings));
  const std::uint64_t bytes = o.block * o.blocks;
  const viaduct::Pin memory = pinnedMemory(agent, bytes * o.transfers, o.memory);
  const viaduct::Pin file = must(agent.pin(viaduct::Segment::file(o.file), "file"));
  const viaduct::Peer self = must(agent.self());
  must(self.ready(30s));
  must(self.waitPin("memory", 30s));
  must(self.waitPin("file", 30s));

  std::mt19937_64 dice(1);
  std::vector<viaduct::Transfer> transfers;
  // Several plans for each place in memory, so that the blocks are not the same all the time.
  constexpr std::uint32_t kPlans = 16;
  for (std::uint32_t i = 0; i < o.transfers * kPlans; ++i) {
    const std::uint64_t at = memory.info().address + bytes * (i % o.transfers);
    const viaduct::Selection here{.blocks = must(viaduct::Blocks::strided(
                                      {.base = at, .bytes = o.block, .count = o.blocks}))};
    transfers.push_back(must(agent.plan(o.kind, self, here, randomBlocks(file, o, dice))));
  }
  std::uint64_t next = 0, ended = 0;
  for (; next < o.transfers; ++next) must(transfers[next].post());
  const auto cycle = [&] {
    must(transfers[ended++ % transfers.size()].wait());
    must(transfers[next++ % transfers.size()].post());
  };
  const auto warm = std::chrono::steady_clock::now() + 1s;
  while (std::chrono::steady_clock::now() < warm) cycle();
  const std::uint64_t before = ended;
  const double cpu = processorSeconds();
  const auto begun = std::chrono::steady_clock::now();
  std::chrono::duration<double> passed{};
  do {
    cycle();
    passed = std::chrono::steady_clock::now() - begun;
  } while (passed.count() < o.seconds);
  const double used = processorSeconds() - cpu;
  const auto ios = static_cast<double>((ended - before) * o.blocks);
  const std::string way = transfers[(ended - 1) % transfers.size()].path().shares.at(0).way;
  while (ended < next) must(transfers[ended++ % transfers.size()].wait());
  fmt::print(
      "{{\"way\": \"{}\", \"iops\": {:.0f}, \"bytes_per_second\": {:.0f}, "
      "\"cpu_us_per_io\": {:.3f}}}\n",
      way, ios / passed.count(), ios * static_cast<double>(o.block) / passed.count(),
      used / ios * 1e6);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 7) {
    fmt::print(stderr,
               "usage: file_bench FILE read|write BLOCK BLOCKS TRANSFERS SECONDS "
               "[ENGINE [MEMORY]]\n");
    return 2;
  }
  const std::vector<std::string> words(argv, argv + argc);
  run({.file = words[1],
       .kind = words[2] == "write" ? OpKind::kWrite : OpKind::kRead,
       .block = std::stoull(words[3]),
       .blocks = static_cast<std::uint32_t>(std::stoul(words[4])),
       .transfers = static_cast<std::uint32_t>(std::stoul(words[5])),
       .seconds = std::stod(words[6]),
       .engine = argc > 7 ? words[7] : "auto",
       .memory = argc > 8 ? words[8] : ""});
}
