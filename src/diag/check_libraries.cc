// Checks the copies and versions of the libraries that carry RDMA.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/lists.h"
#include "diag/hardware.h"
#include "diag/libraries.h"
#include "diag/peer_memory.h"
#include "diag/process_facts.h"
#include "diag/topics.h"

namespace viaduct::diag {
namespace {

using Library = Live::Library;

constexpr auto kVerbs = "libibverbs.so.1";
constexpr auto kFabric = "libfabric.so.1";

// The version of rdma-core is the third number of a library's file: libibverbs.so.1.14.39.0 belongs
// to rdma-core 39.0. The numbers before it are the version of the library's interface.
VersionNumbers packageVersion(const Library& library) {
  auto numbers = versionNumbers(library.version);
  if (library.name == kVerbs && numbers.size() >= 3 && numbers[0] == 1)
    numbers.erase(numbers.begin(), numbers.begin() + 2);
  return numbers;
}

// The path without links, because /lib64 and /usr/lib64 are one folder on most systems.
std::string ownPath(const Tree& tree, const std::string& path) {
  if (std::string real = tree.resolve(path); !real.empty()) return real;
  return path.starts_with("/usr/lib") ? path.substr(4) : path;
}

// The different files of a library, in the loader's order.
std::vector<Library> copiesOf(const Node& node, std::string_view name) {
  std::map<std::string, bool> seen;
  std::vector<Library> out;
  for (const Library& one : node.live.libraries)
    if (one.name == name && seen.emplace(ownPath(node.tree, one.path), true).second)
      out.push_back(one);
  return out;
}

std::vector<Evidence> copyEvidence(const std::vector<Library>& copies) {
  return base::mapped(copies, [](const Library& one) {
    return Evidence{one.path, one.version.empty() ? "version unknown" : one.version};
  });
}

struct TwoCopies {
  const char *library, *code, *shown, *cause;
};

constexpr std::array kTwoCopies{
    TwoCopies{kFabric, "libraries.two-libfabric", "libfabric",
              "The EFA installer brings one to /opt/amazon/efa, the distribution another."},
    TwoCopies{"libucp.so.0", "libraries.two-ucx", "UCX",
              "Python wheels bring one (nixl_cu12.libs), the system another."},
};

void checkCopies(const Node& node, bool rdma, const TwoCopies& what, Findings& findings) {
  const auto copies = copiesOf(node, what.library);
  if (copies.size() < 2) return;
  const std::string& first = copies.front().path;
  findings.add({.severity = rdma ? Severity::kWarning : Severity::kInfo,
                .code = what.code,
                .what = fmt::format("{} copies of {} are here; a process may load two of them.",
                                    copies.size(), what.shown),
                .evidence = copyEvidence(copies),
                .cause = what.cause,
                .fix = fmt::format("See which one a job has: grep {} /proc/PID/maps\n"
                                   "Then put the right one first, for example:\n"
                                   "export LD_LIBRARY_PATH={}:$LD_LIBRARY_PATH",
                                   what.library, first.substr(0, first.rfind('/'))),
                .gain =
                    "Full bandwidth: a plugin that loads another copy than the one it was built "
                    "against can lose half of it."});
}

struct OldLibrary {
  const Library* library;
  std::string least, harm;
  Severity severity;
};

bool isOlder(const Library& library, const VersionNumbers& least) {
  const auto version = packageVersion(library);
  return !version.empty() && version < least;
}

// libfabric before 2.5.1 cannot register memory on Grace with Blackwell, recognized here as arm64
// with EFA.
bool isGraceWithEfa(const Node& node, const std::vector<RdmaDevice>& devices) {
  return node.live.machine == "aarch64" && std::ranges::any_of(devices, &RdmaDevice::efa);
}

std::vector<OldLibrary> oldLibraries(const Node& node, const std::vector<RdmaDevice>& devices) {
  std::vector<OldLibrary> out;
  const bool needs_dma_buf = hasNvidiaDriver(node.tree) && peerMemory(node, {}).module.empty();
  for (const Library& one : node.live.libraries) {
    if (one.name == kFabric && isGraceWithEfa(node, devices) && isOlder(one, {2, 5, 1}))
      out.push_back(
          {&one, "2.5.1", "fi_mr_reg fails with Bad address on GB200.", Severity::kFailure});
    if (one.name == kVerbs && needs_dma_buf && isOlder(one, {34}))
      out.push_back({&one, "rdma-core 34",
                     "ibv_reg_dmabuf_mr is missing, and no peer memory "
                     "module is loaded.",
                     Severity::kWarning});
    if (one.name == "libnccl.so.2" && isOlder(one, kNcclChoosesGid))
      out.push_back({&one, "2.21", "NCCL does not choose the GID index itself.", Severity::kInfo});
  }
  return out;
}

void addOld(const std::vector<OldLibrary>& old, Findings& findings) {
  Cases cases;
  std::string cause, fix = "Update:";
  auto severity = Severity::kInfo;
  for (const OldLibrary& one : old) {
    cases.add(one.library->name + " " + one.library->version,
              {one.library->path, one.library->version});
    cause += (cause.empty() ? "" : " ") + one.harm;
    fix += fmt::format("\n{} to {} or later", one.library->name, one.least);
    severity = std::max(severity, one.severity);
  }
  findings.add({.severity = severity,
                .code = "libraries.old",
                .what = fmt::format("Libraries lack functions that this node needs: {}.",
                                    listed(cases.names)),
                .evidence = std::move(cases.evidence),
                .cause = std::move(cause),
                .fix = std::move(fix),
                .gain = "Programs find the functions that they need."});
}

void addNoVerbs(std::size_t devices, Findings& findings) {
  findings.add({.severity = Severity::kFailure,
                .code = "libraries.no-verbs",
                .what = fmt::format("{} RDMA devices are here, but not libibverbs.", devices),
                .evidence = {{kVerbs, "the loader finds none"}},
                .cause = "The image lacks rdma-core; UCX and NCCL then use TCP and say little.",
                .fix = "Debian, Ubuntu: apt-get install ibverbs-providers librdmacm1\n"
                       "RHEL, Amazon Linux: dnf install libibverbs librdmacm",
                .gain = "Programs can open the RDMA devices."});
}

void addLibrariesUnknown(Severity severity, Findings& findings) {
  findings.add({.severity = severity,
                .code = "libraries.unknown",
                .what = "Could not look at the libraries of this node.",
                .evidence = {{"libraries", "no list"}},
                .cause = "The folder of files holds no list of libraries.",
                .fix = "On the node: viaduct doctor --only libraries"});
}

void addOneFile(Findings& findings) {
  findings.add(
      {.severity = Severity::kInfo,
       .code = "libraries.one-file",
       .what = "The doctor that looked here is one static file, which loads no library.",
       .evidence = {{"libfabric, UCX", "versions not looked at"},
                    {"libipsec-mb", "not looked for"},
                    {"object stores", "not asked, for want of libcurl"},
                    {"host names", "looked up in /etc/hosts and DNS alone"}},
       .cause = "A static file runs in every pod. A library would bring a second C library "
                "into its process.",
       .fix = "In an image that has Viaduct: viaduct doctor --only libraries,privacy,storage",
       .gain = "The doctor also finds old libraries and object stores that refuse."});
}

}  // namespace

void checkLibraries(const Node& node, Findings& findings) {
  const std::vector<RdmaDevice> devices = rdmaDevices(node.tree);
  if (node.live.one_file) addOneFile(findings);
  for (const TwoCopies& what : kTwoCopies) checkCopies(node, !devices.empty(), what, findings);
  for (const Library& one : node.live.libraries)
    findings.fine(fmt::format("{} {} ({})", one.name, one.version, one.path));
  // Without /sys it is unknown whether there is an RDMA device.
  if (devices.empty() && node.tree.list("/sys").empty())
    return addLibrariesUnknown(Severity::kInfo, findings);
  if (devices.empty()) return findings.fine("No RDMA device: no library is needed.");
  if (node.live.libraries.empty()) return addLibrariesUnknown(Severity::kUnknown, findings);
  if (base::firstWith(node.live.libraries, &Library::name, kVerbs) == nullptr)
    addNoVerbs(devices.size(), findings);
  if (const auto old = oldLibraries(node, devices); !old.empty()) addOld(old, findings);
}

}  // namespace viaduct::diag
