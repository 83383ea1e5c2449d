#include "host/process_limits.h"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/text.h"
#include "host/control_groups.h"
#include "host/processors.h"

namespace viaduct::host {
namespace {

constexpr std::uint32_t kMostProcessors = 65536;
constexpr auto kPages = "/sys/kernel/mm/transparent_hugepage/";

// Reads "0-3,8".
std::vector<std::uint32_t> numbersIn(const std::string& text) {
  std::vector<std::uint32_t> out;
  for (const std::string& part : base::partsOf(text)) {
    const auto dash = part.find('-');
    const auto first = base::numberIn<std::uint32_t>(part.substr(0, dash));
    const auto last =
        dash == std::string::npos ? first : base::numberIn<std::uint32_t>(part.substr(dash + 1));
    if (!first || !last || *last >= kMostProcessors) return {};
    for (std::uint32_t one = *first; one <= *last; ++one) out.push_back(one);
  }
  return out;
}

// The quota of one group, in processors.
std::optional<double> quotaIn(const Tree& tree, const GroupFolder& folder) {
  std::optional<double> quota, period;
  if (folder.version == 1) {
    quota = base::numberIn<double>(tree.line(folder.path + "/cpu.cfs_quota_us"));
    period = base::numberIn<double>(tree.line(folder.path + "/cpu.cfs_period_us"));
  } else {
    const std::string line = tree.line(folder.path + "/cpu.max");  // "200000 100000"
    const auto words = base::wordsOf(line);
    if (words.size() != 2) return std::nullopt;
    quota = base::numberIn<double>(words[0]);
    period = base::numberIn<double>(words[1]);
  }
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return *quota / *period;
}

double leastQuota(const Tree& tree) {
  double out = 0;
  for (const GroupFolder& folder : groupFolders(tree, "cpu"))
    if (const auto quota = quotaIn(tree, folder)) out = out == 0 ? *quota : std::min(out, *quota);
  return out;
}

// The last of the three figures "4096 16384 4194304".
std::uint64_t mostBuffer(const Tree& tree, const char* name) {
  const std::string line = tree.line(std::string("/proc/sys/net/ipv4/") + name);
  const auto words = base::wordsOf(line);
  return words.size() == 3 ? base::numberIn<std::uint64_t>(words[2]).value_or(0) : 0;
}

// The chosen word of "always [madvise] never".
std::string chosenIn(const std::string& line) {
  const auto from = line.find('['), to = line.find(']');
  return from < to && to != std::string::npos ? line.substr(from + 1, to - from - 1) : "";
}

// The longest time, in seconds, that any of the groups was held back. Version 1 counts nanoseconds,
// and version 2 microseconds.
double throttledSeconds(const Tree& tree) {
  double out = 0;
  for (const GroupFolder& folder : groupFolders(tree, "cpu")) {
    const bool old = folder.version == 1;
    const std::string stat = tree.read(folder.path + "/cpu.stat").text;
    const auto time =
        base::numberIn<double>(valueIn(stat, old ? "throttled_time" : "throttled_usec", ' '));
    out = std::max(out, time.value_or(0) * (old ? 1e-9 : 1e-6));
  }
  return out;
}

// Reads a figure from two lines that begin with `front`: the names of all figures, then their
// values. 0: unknown.
std::uint64_t figureIn(const Tree& tree, const char* file, std::string_view front,
                       std::string_view name) {
  std::string names;
  for (const std::string& line : tree.lines(file)) {
    if (!line.starts_with(front)) continue;
    const auto keys = base::wordsOf(names), values = base::wordsOf(line);
    for (std::size_t i = 0; i < std::min(keys.size(), values.size()); ++i)
      if (keys[i] == name) return base::numberIn<std::uint64_t>(values[i]).value_or(0);
    names = line;
  }
  return 0;
}

// Reads "5231 1234 96" of each thread: nanoseconds that the thread ran and waited, and its time
// slices.
void addThreads(const Tree& tree, ProcessTimes& out) {
  for (const std::string& thread : tree.list("/proc/self/task")) {
    const std::string line = tree.line("/proc/self/task/" + thread + "/schedstat");
    const auto words = base::wordsOf(line);
    if (words.size() != 3) continue;
    out.ran += base::numberIn<double>(words[0]).value_or(0) * 1e-9;
    out.waited += base::numberIn<double>(words[1]).value_or(0) * 1e-9;
  }
}

std::vector<std::uint32_t> allowedProcessors(const Tree& tree) {
  return numbersIn(valueIn(tree.read("/proc/self/status").text, "Cpus_allowed_list"));
}

}  // namespace

ProcessLimits processLimits(const Tree& tree) {
  const std::string status = tree.read("/proc/self/status").text;
  const bool refused = valueIn(status, "THP_enabled") == "0";
  return {.processors = static_cast<std::uint32_t>(
              numbersIn(tree.line("/sys/devices/system/cpu/online")).size()),
          .allowed = allowedProcessors(tree),
          .quota = leastQuota(tree),
          .send_buffer = mostBuffer(tree, "tcp_wmem"),
          .receive_buffer = mostBuffer(tree, "tcp_rmem"),
          .huge_pages = refused ? "off" : chosenIn(tree.line(std::string(kPages) + "enabled")),
          .huge_shared_pages =
              refused ? "off" : chosenIn(tree.line(std::string(kPages) + "shmem_enabled")),
          .tracer = base::numberIn<std::uint32_t>(valueIn(status, "TracerPid")).value_or(0)};
}

// Subtracts the segments that the receiver reports as received twice, because these were not lost.
TcpSegments tcpSegments(const Tree& tree) {
  const std::uint64_t again = figureIn(tree, "/proc/net/snmp", "Tcp:", "RetransSegs"),
                      needless = figureIn(tree, "/proc/net/netstat", "TcpExt:", "TCPDSACKRecvSegs");
  return {.sent = figureIn(tree, "/proc/net/snmp", "Tcp:", "OutSegs"),
          .repeated = again - std::min(again, needless)};
}

ProcessTimes processTimes(const Tree& tree) {
  ProcessTimes out{.throttled = throttledSeconds(tree)};
  addThreads(tree, out);
  const std::vector<std::uint32_t> allowed = allowedProcessors(tree);
  const std::set<std::uint32_t> own(allowed.begin(), allowed.end());
  for (const ProcessorBusy& one : processorsBusy(tree))
    if (own.contains(one.number)) out.busy += one.seconds;
  return out;
}

}  // namespace viaduct::host
