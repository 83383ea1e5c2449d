// Random reads or writes of one file by an agent, for a comparison with fio (bench/file_floor.py).
// Prints one line of JSON: bytes per second, I/Os per second, and the processor time of this
// process, with all of its threads.
//   file_bench FILE read|write BLOCK BLOCKS_PER_TRANSFER TRANSFERS SECONDS [ENGINE [MEMORY]]
// Keeps TRANSFERS transfers posted, each of random blocks of the file. Host memory is that of
// Agent::allocate, or the file MEMORY. The latter is mapped several times if it is smaller than all
// blocks, so that the bench can share the pages of another program. The threads sleep while nothing
// has ended.
#include <fcntl.h>
#include <sys/stat.h>

#include <cstdlib>
#include <random>

#include "harness/agents.h"
#include "io_rate.h"

namespace {

using namespace viaduct;
using namespace viaduct::bench;

Pin pinnedMemory(Agent& agent, std::uint64_t bytes, const std::string& file) {
  if (file.empty()) return must(agent.allocate(bytes));
  const Fd fd(must(::open(file.c_str(), O_RDWR | O_CLOEXEC), "open"));
  struct stat facts{};
  must(::fstat(fd.get(), &facts), "fstat");
  if (facts.st_size == 0) die("an empty file as memory");
  const auto size = static_cast<std::uint64_t>(facts.st_size);
  // Room for whole copies of the file, and one huge page more, so that the copies can be aligned.
  constexpr std::uint64_t kHugePage = std::uint64_t{2} << 20U;
  const std::uint64_t room = (bytes + size - 1) / size * size;
  std::byte* memory = mapped(room + kHugePage, MAP_PRIVATE | MAP_NORESERVE);
  memory += kHugePage - reinterpret_cast<std::uintptr_t>(memory) % kHugePage;
  for (std::uint64_t at = 0; at < room; at += size)
    if (::mmap(memory + at, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE,
               fd.get(), 0) == MAP_FAILED)
      dieOf("mmap");
  return must(agent.pin(Segment::host(memory, bytes)));
}

// Different blocks of the file, at random.
Indices randomBlocks(std::uint64_t count, std::uint32_t wanted, std::mt19937_64& dice) {
  Indices out;
  std::vector<bool> taken(count);
  while (out.size() < wanted) {
    const auto one = static_cast<std::uint32_t>(dice() % count);
    if (!taken[one]) out.push_back(one);
    taken[one] = true;
  }
  return out;
}

Settings settingsOf(std::string engine) {
  Settings settings{.name = "bench", .listen = {}, .backends = {"file"}};
  settings.others["VIADUCT_FILE_ENGINE"] = std::move(engine);
  if (const char* spin = std::getenv("VIADUCT_SPIN"))
    settings.spin = std::chrono::microseconds(std::stol(spin));
  if (const char* depth = std::getenv("VIADUCT_FILE_QUEUE_DEPTH"))
    settings.others["VIADUCT_FILE_QUEUE_DEPTH"] = depth;
  return settings;
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments given(
      argc, argv, "file_bench FILE read|write BLOCK BLOCKS TRANSFERS SECONDS [ENGINE [MEMORY]]");
  const OpKind kind = given.text(1) == "write" ? OpKind::kWrite : OpKind::kRead;
  const auto block = given.number<std::uint64_t>(2, 0);
  const auto count = given.number<std::uint32_t>(3, 0), posted = given.number<std::uint32_t>(4, 0);
  Agent agent = must(Agent::open(settingsOf(given.text(6, "auto"))));
  const Pin memory = pinnedMemory(agent, block * count * posted, given.text(7));
  const Pin file = must(agent.pin(Segment::file(given.text(0)), "file"));
  const Peer self = must(agent.self());
  must(self.ready(kLong));
  must(self.waitPin("file", kLong));

  std::mt19937_64 dice(1);
  std::vector<Transfer> transfers;
  // Several plans for each place in memory, so that the blocks are not the same all the time.
  constexpr std::uint32_t kPlans = 16;
  const std::uint64_t all = file.size() / block;
  for (std::uint32_t i = 0; i < posted * kPlans; ++i)
    transfers.push_back(
        must(agent.plan(kind, self,
                        blocks({.base = memory.info().address + block * count * (i % posted),
                                .bytes = block,
                                .count = count}),
                        blocks({.base = file.info().address, .bytes = block, .count = all},
                               randomBlocks(all, count, dice)))));
  std::uint64_t next = 0, ended = 0;
  for (; next < posted; ++next) must(transfers[next].post());
  const std::string rate = ioRate({block, count, given.number(5, 0.0)}, [&] {
    must(transfers[ended++ % transfers.size()].wait());
    must(transfers[next++ % transfers.size()].post());
  });
  const std::string way = transfers[(ended - 1) % transfers.size()].path().shares.at(0).way;
  while (ended < next) must(transfers[ended++ % transfers.size()].wait());
  fmt::print("{{\"way\": \"{}\", {}}}\n", way, rate);
}
