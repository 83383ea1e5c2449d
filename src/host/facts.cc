#include "host/facts.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <cmath>
#include <limits>
#include <thread>

#include "base/text.h"
#include "host/memory.h"

namespace viaduct::host {
namespace {

// An arm64 kernel gives numbers for its cores and no name: Grace has implementer 0x41, part 0xd4f.
std::string cpuModel(const Tree& tree) {
  const std::string text = tree.read("/proc/cpuinfo").text;
  std::string name = valueIn(text, "model name");
  const std::string part = valueIn(text, "CPU part");
  if (!name.empty() || part.empty()) return name;
  return fmt::format("arm64, implementer {}, part {}", valueIn(text, "CPU implementer"), part);
}

std::uint32_t usableCores() {
  // If there are more processors than a cpu_set_t holds, the call fails, and all of them count.
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof(set), &set) == 0)
    return static_cast<std::uint32_t>(CPU_COUNT(&set));
  return std::thread::hardware_concurrency();
}

// Uses the system call, so that a library that replaces the C library's clock has no effect.
double clockOf(clockid_t clock) {
  timespec at{};
  ::syscall(SYS_clock_gettime, clock, &at);
  return static_cast<double>(at.tv_sec) + static_cast<double>(at.tv_nsec) * 1e-9;
}

// Reads one clock between two readings of the other. The closest of a few tries counts, because the
// thread may lose its processor between them.
double startByClock() {
  constexpr int kTries = 10;
  double out = 0, closest = std::numeric_limits<double>::max();
  for (int i = 0; i < kTries; ++i) {
    const double before = clockOf(CLOCK_BOOTTIME), real = clockOf(CLOCK_REALTIME),
                 after = clockOf(CLOCK_BOOTTIME);
    if (after - before >= closest) continue;
    closest = after - before;
    out = real - before - closest / 2;
  }
  return out;
}

}  // namespace

double uptimeOffset(const Tree& tree) {
  const std::string figures =
      valueIn(tree.tryRead("/proc/self/timens_offsets").text, "boottime", ' ');
  const auto words = base::wordsOf(figures);
  if (words.size() != 2) return 0;
  const auto seconds = base::numberIn<std::int64_t>(words[0]),
             nanoseconds = base::numberIn<std::int64_t>(words[1]);
  return static_cast<double>(seconds.value_or(0)) +
         static_cast<double>(nanoseconds.value_or(0)) * 1e-9;
}

KernelStart kernelStart(const Tree& tree) {
  if (!tree.live()) return {};
  const double offset = uptimeOffset(tree);
  const auto btime =
      base::numberIn<std::int64_t>(valueIn(tree.read("/proc/stat").text, "btime", ' '));
  return {.by_clock = startByClock() + offset,
          .by_stat = btime ? static_cast<double>(*btime) + offset : 0};
}

bool startedTogether(double one, double other) {
  constexpr double kTogether = 1e-3;
  return one > 0 && other > 0 && std::abs(one - other) < kTogether;
}

std::string bootId(const Tree& tree) { return tree.line("/proc/sys/kernel/random/boot_id"); }

std::string hostName() {
  utsname names{};
  return ::uname(&names) == 0 ? names.nodename : "";
}

Facts facts(const Tree& tree) {
  utsname names{};
  const bool named = ::uname(&names) == 0;
  return {.boot_id = bootId(tree),
          .kernel_started = kernelStart(tree).by_clock,
          .hostname = hostName(),
          .kernel = named ? names.release : "",
          .cpu_model = cpuModel(tree),
          .cores = usableCores(),
          .memory = memInfo(tree, "MemTotal").value_or(0),
          .interfaces = interfaces(tree)};
}

}  // namespace viaduct::host
