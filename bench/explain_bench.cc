// The speed and memory of `viaduct doctor --explain` on a log.   explain_bench [bytes]
// The log has lines of NCCL, vLLM and UCX; each 500th line has a known text.
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <thread>

#include "base/fd.h"
#include "base/random.h"
#include "base/sizes.h"
#include "diag/explain/log_reader.h"
#include "diag/explain/samples_testing.h"
#include "harness/program.h"

namespace {

using namespace viaduct;
using namespace viaduct::bench;

std::string ordinaryLine(base::Random& random, std::uint64_t number) {
  const auto rank = random.below(8);
  switch (random.below(4)) {
    case 0:
      return fmt::format(
          "worker-{}:{}:{} [{}] NCCL INFO Channel {:02}/0 : {}[{}] -> {}[{}] via P2P/CUMEM/read\n",
          rank, 3468, 3905, rank, number % 32, rank, rank, rank + 1, rank + 1);
    case 1:
      return fmt::format(
          "worker-{}:{}:{} [{}] NCCL INFO proxyProgressAsync opId=0x{:x} op.type=4 "
          "op.reqBuff=0x{:x} "
          "op.respSize=16 done\n",
          rank, 3468, 3905, rank, random.next(), random.next());
    case 2:
      return fmt::format(
          "\x1b[0;36m(EngineCore_DP0 pid={})\x1b[0;0m INFO 09-24 16:35:{:02} [loggers.py:123] "
          "Engine "
          "000: Avg prompt throughput: {}.1 tokens/s, Running: {} reqs, GPU KV cache usage: "
          "{}.0%\n",
          3747544, number % 60, random.below(100000), random.below(256), random.below(100));
    default:
      return fmt::format(
          "[1757737742.{:06}] [cn0244:260472:0]   ib_md.c:816  UCX  DEBUG registered memory "
          "0x{:x}..0x{:x} on mlx5_{} lkey 0xc0563 rkey 0xc0563 access 0xf flags 0x368\n",
          number % 1000000, random.next(), random.next(), rank);
  }
}

void writeAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto written = must(::write(fd, bytes.data(), bytes.size()), "write");
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

base::Fd makeLog(std::uint64_t bytes) {
  base::Fd log(must(::memfd_create("explain_bench", MFD_CLOEXEC), "memfd_create"));
  const auto known = diag::allSamples();
  base::Random random(1);
  std::string buffer;
  for (std::uint64_t made = 0, number = 0; made < bytes; ++number) {
    buffer += number % 500 == 499 ? std::string(known[random.below(known.size())].line) + "\n"
                                  : ordinaryLine(random, number);
    if (buffer.size() < 1 << 20 && made + buffer.size() < bytes) continue;
    writeAll(log.get(), buffer);
    made += buffer.size();
    buffer.clear();
  }
  return log;
}

void measure(Table& table, std::string_view from, int fd) {
  const double before = processorSeconds(CLOCK_THREAD_CPUTIME_ID);
  diag::LogSummary summary;
  const double seconds = secondsOf([&] { summary = must(diag::readLog(fd)); });
  table.row(from, summary.bytes, summary.lines, summary.findings.size(), seconds,
            processorSeconds(CLOCK_THREAD_CPUTIME_ID) - before,
            static_cast<double>(summary.bytes) / seconds / 1e6);
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments given(argc, argv, "explain_bench [BYTES]");
  const base::Fd log = makeLog(must(base::parseSize(given.text(0, "1GB"))));
  Table table({words("", 4), figure("bytes", 0, 12), figure("lines", 0, 10),
               figure("known texts", 0), figure("s", 2), figure("s of a processor", 2),
               figure("MB/s", 0)});
  const auto rewind = [&] { must(::lseek(log.get(), 0, SEEK_SET), "lseek"); };
  for (int run = 0; run < 3; ++run) {
    rewind();
    measure(table, "file", log.get());
  }
  rewind();
  std::array<int, 2> ends{};
  must(::pipe(ends.data()), "pipe");
  const std::jthread writer([&log, in = base::Fd(ends[1])] {
    std::string buffer(1 << 16, '\0');
    for (ssize_t got = 0; (got = ::read(log.get(), buffer.data(), buffer.size())) > 0;)
      writeAll(in.get(), std::string_view(buffer.data(), static_cast<std::size_t>(got)));
  });
  measure(table, "pipe", base::Fd(ends[0]).get());
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  fmt::print("peak memory of the process: {}\n",
             base::roundedSize(static_cast<std::uint64_t>(usage.ru_maxrss) * 1024));
}
