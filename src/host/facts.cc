#include "host/facts.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/utsname.h>

#include <thread>

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

}  // namespace

std::string bootId(const Tree& tree) { return tree.line("/proc/sys/kernel/random/boot_id"); }

std::string hostName() {
  utsname names{};
  return ::uname(&names) == 0 ? names.nodename : "";
}

Facts facts(const Tree& tree) {
  utsname names{};
  const bool named = ::uname(&names) == 0;
  return {.boot_id = bootId(tree),
          .hostname = hostName(),
          .kernel = named ? names.release : "",
          .cpu_model = cpuModel(tree),
          .cores = usableCores(),
          .memory = memInfo(tree, "MemTotal").value_or(0),
          .interfaces = interfaces(tree)};
}

}  // namespace viaduct::host
