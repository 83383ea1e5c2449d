// Checks the paths and the object stores that transfers are to use.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/lists.h"
#include "base/sizes.h"
#include "diag/topics.h"

namespace viaduct::diag {
namespace {

// ---- Paths.

bool isError(const Tried& tried, int error) { return tried.text.ends_with(::strerror(error)); }

std::string mountText(const PathFacts& path) {
  if (path.kind.empty()) return "a block device";
  return path.mount.empty() ? path.kind
                            : fmt::format("{} at {} ({})", path.kind, path.mount, path.source);
}

Evidence mountEvidence(const PathFacts& path) { return {"/proc/self/mountinfo", mountText(path)}; }

// Adds a finding about a path that cannot be used at all.
void addUnusable(const PathFacts& path, Findings& findings) {
  Finding out{.severity = Severity::kFailure,
              .code = "storage.path-fault",
              .what = fmt::format("{} cannot be used: {}.", path.path, path.opened.text),
              .evidence = {{path.path, path.opened.text}},
              .cause = "The device or the server of the file system has a fault.",
              .fix = "dmesg | tail; mount | grep -w nfs"};
  if (isError(path.opened, ENOENT) || isError(path.opened, ENOTDIR)) {
    out.code = "storage.path-missing";
    out.what = fmt::format("There is no {}.", path.path);
    out.cause = "The volume is not mounted in this container, or the name is wrong.";
    out.fix = fmt::format("ls -ld {}\nIn the pod: volumeMounts: [{{name: NAME, mountPath: {}}}]",
                          path.path, path.path);
  } else if (isError(path.opened, EACCES) || isError(path.opened, EPERM)) {
    out.code = "storage.path-denied";
    out.what = fmt::format("This user may not read {}.", path.path);
    out.cause =
        "The permissions of the path or of a folder above it exclude the user, or the "
        "container may not open this device.";
    out.fix =
        fmt::format("namei -l {}\nIn the pod: securityContext: {{fsGroup: GROUP}}", path.path);
  } else if (path.opened.text.starts_with("it is no")) {
    out.code = "storage.path-special";
    out.cause = "Transfers need bytes at fixed offsets, which pipes and sockets lack.";
    out.fix = "Name a regular file, a folder or a block device.";
  } else if (path.opened.text.starts_with("no answer")) {
    out.code = "storage.path-silent";
    out.cause = "The server of a network file system is down, or the network to it is.";
    out.fix = "mount | grep -E 'nfs|lustre|ceph|cifs'; then check that server";
  }
  findings.add(std::move(out));
}

constexpr std::array<std::string_view, 14> kNetwork{
    "nfs",    "nfs4", "cifs", "smb3",      "ceph",     "lustre", "gpfs",
    "beegfs", "9p",   "afs",  "glusterfs", "virtiofs", "fuse",   "wekafs"};

bool isInMemory(const PathFacts& path) { return path.kind == "tmpfs" || path.kind == "ramfs"; }
bool isOverNetwork(const PathFacts& path) {
  return base::contains(kNetwork, path.kind) || path.kind.starts_with("fuse.");
}

// Reports the kind of file system if it lies in memory, in an overlay, or over a network.
void checkKind(const PathFacts& path, Findings& findings) {
  if (isInMemory(path))
    return findings.add(
        {.severity = Severity::kWarning,
         .code = "storage.path-in-memory",
         .what = fmt::format("{} is on {}, which lies in memory.", path.path, path.kind),
         .evidence = {mountEvidence(path)},
         .cause = "Its bytes count against the memory of the node and the pod, and "
                  "are lost at a restart.",
         .fix = "Use a folder on a disk: a local volume, or a hostPath.",
         .gain = "Memory stays free, and the bytes survive."});
  if (path.kind == "overlay")
    return findings.add(
        {.severity = Severity::kWarning,
         .code = "storage.path-overlay",
         .what = fmt::format("{} is in the container's own layer (overlay).", path.path),
         .evidence = {mountEvidence(path)},
         .cause = "The first write to a file of the image copies the whole file, and all bytes are "
                  "lost with the container.",
         .fix = fmt::format("Mount a volume there: volumeMounts: [{{name: NAME, mountPath: {}}}]",
                            path.path),
         .gain = "The disk is reached without the layers, and the bytes survive."});
  if (!isOverNetwork(path)) return;
  findings.add({.code = "storage.path-network",
                .what = fmt::format("{} is on {}: its bytes come from another host or process.",
                                    path.path, path.kind),
                .evidence = {mountEvidence(path)},
                .cause =
                    "The rate is that of its server. If the server hangs, transfers wait until "
                    "their deadline."});
}

void checkDirect(const PathFacts& path, Findings& findings) {
  if (isInMemory(path)) return;  // checkKind() has reported it, and it has no disk
  if (!path.direct)
    return findings.add(
        {.severity = Severity::kUnknown,
         .code = "storage.direct-not-tried",
         .what = fmt::format("Could not try O_DIRECT in {}.", path.path),
         .evidence = {mountEvidence(path)},
         .cause = "The folder takes no file of this user, or no unnamed file, and holds no file to "
                  "read.",
         .fix = fmt::format("Name a file: viaduct doctor --path {}/FILE", path.path)});
  if (path.direct->ok)
    return findings.fine(fmt::format(
        "O_DIRECT works at {} ({}): offsets are multiples of {} bytes, addresses of {}.", path.path,
        mountText(path), path.offset_multiple, path.memory_multiple));
  findings.add(
      {.severity = Severity::kWarning,
       .code = "storage.no-direct",
       .what = fmt::format("Files at {} are reached through the page cache only.", path.path),
       .evidence = {{"O_DIRECT", path.direct->text}, mountEvidence(path)},
       .cause = "The file system has no direct I/O, or encrypts, compresses or journals "
                "the bytes of its files.",
       .fix = "Use ext4 or XFS on a disk, without data=journal and encryption.",
       .gain = "Transfers do not copy through the page cache, and do not evict it."});
}

void checkRoom(const PathFacts& path, Findings& findings) {
  if (path.read_only)
    return findings.add({.code = "storage.path-read-only",
                         .what = fmt::format("{} can only be read.", path.path),
                         .evidence = {mountEvidence(path)},
                         .cause = "Its mount is read-only, or its permissions exclude this user.",
                         .fix = "If transfers write there: remove readOnly from volumeMounts, or "
                                "mount -o remount,rw"});
  if (path.bytes == 0 || isInMemory(path)) return;
  const std::string room =
      fmt::format("{} of {} are free", base::roundedSize(path.free), base::roundedSize(path.bytes));
  if (path.free >= base::kGiB && path.free >= path.bytes / 100)
    return findings.fine(fmt::format("At {}, {}.", path.path, room));
  findings.add({.severity = Severity::kWarning,
                .code = "storage.path-full",
                .what = fmt::format("The file system of {} is nearly full: {}.", path.path, room),
                .evidence = {{"statvfs " + path.path, room}, mountEvidence(path)},
                .cause = "Old blocks, or files that were removed and that a process still holds.",
                .fix = fmt::format("df -h {}; du -xh --max-depth=1 {} | sort -h; lsof +L1",
                                   path.path, path.mount.empty() ? path.path : path.mount),
                .gain = "Writes do not fail with: No space left on device."});
}

// Without indirect descriptors, each run of adjacent physical pages takes one of the 256
// descriptors of a virtio disk's queue: docs/measured/files.md.
void checkPages(const PathFacts& path, const Tree& tree, Findings& findings) {
  constexpr std::size_t kIndirect = 28;  // VIRTIO_RING_F_INDIRECT_DESC
  constexpr auto kSetting = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";
  if (!path.direct || !path.direct->ok || path.virtio_features.size() <= kIndirect ||
      path.virtio_features[kIndirect] == '1')
    return;
  const std::string setting = tree.line(kSetting);
  const bool none = setting.empty() || setting.find("[never]") != std::string::npos ||
                    setting.find("[deny]") != std::string::npos;
  if (!none)
    return findings.fine(
        fmt::format("Agent::allocate gets huge pages, which the disk of {} needs.", path.path));
  findings.add(
      {.code = "storage.small-pages",
       .what = fmt::format("The disk of {} is slow with large blocks in 4 KiB pages.", path.path),
       .evidence = {{"features of the virtio disk", "bit 28 (indirect descriptors) is 0"},
                    {kSetting, setting.empty() ? "not read" : setting}},
       .cause = "Each 4 KiB page takes one descriptor of the disk's queue. About 1 MiB fills a "
                "queue of 256.",
       .fix = fmt::format("echo advise > {}\nOr allocate with huge_pages, after: sysctl "
                          "vm.nr_hugepages=NUMBER",
                          kSetting),
       .gain = "A measured disk read blocks of 1 MiB about twice as fast into huge pages."});
}

void checkPath(const PathFacts& path, const Tree& tree, Findings& findings) {
  if (!path.opened.ok) return addUnusable(path, findings);
  checkKind(path, findings);
  checkDirect(path, findings);
  checkPages(path, tree, findings);
  checkRoom(path, findings);
}

// ---- Object stores.

struct StoreFault {
  StoreStep step;
  const char *code, *what;  // "{}": the store
};
constexpr std::array kStoreFaults{
    StoreFault{StoreStep::kSettings, "storage.store-settings", "The settings of {} are wrong."},
    StoreFault{StoreStep::kLibrary, "storage.no-libcurl",
               "The library libcurl, which reaches {}, cannot be loaded."},
    StoreFault{StoreStep::kName, "storage.store-unresolved", "The name of {} does not resolve."},
    StoreFault{StoreStep::kPort, "storage.store-unreachable", "{} does not answer."},
    StoreFault{StoreStep::kTls, "storage.store-tls", "{} cannot be reached over TLS."},
    StoreFault{StoreStep::kClock, "storage.store-clock",
               "{} refuses requests, because the clocks differ."},
    StoreFault{StoreStep::kKeys, "storage.store-keys", "There are no valid keys for {}."},
    StoreFault{StoreStep::kBucket, "storage.store-bucket", "{} is not at this store."},
    StoreFault{StoreStep::kRights, "storage.store-rights", "The keys may not list {}."},
    StoreFault{StoreStep::kAnswer, "storage.store-answer", "{} does not answer as it should."},
};

std::string storeText(const StoreFacts& store) {
  if (store.endpoint.empty()) return "the object store";
  return store.bucket.empty() ? store.endpoint
                              : fmt::format("the bucket {} at {}", store.bucket, store.endpoint);
}

std::string sentence(std::string text) {
  if (text.empty()) return text;
  text[0] = static_cast<char>(::toupper(text[0]));
  return text.ends_with('.') ? text : text + '.';
}

void addStoreFault(const StoreFacts& store, Findings& findings) {
  // An object may be readable although its bucket may not be listed.
  const bool rights = store.ended == StoreStep::kRights;
  if (rights && store.bucket.empty())
    return findings.fine(
        fmt::format("{} accepts the keys; they may not list its buckets.", store.endpoint));
  const auto* const fault = std::ranges::find(kStoreFaults, store.ended, &StoreFault::step);
  findings.add({.severity = rights ? Severity::kInfo : Severity::kFailure,
                .code = fault->code,
                .what = sentence(fmt::format(fmt::runtime(fault->what), storeText(store))),
                .evidence = {{"object store", store.text}},
                .cause = sentence(store.cause),
                .fix = sentence(store.remedy),
                .gain = rights ? "" : "Transfers reach the objects."});
}

// Warns at 5 minutes, because S3 refuses requests whose time is more than 15 minutes off.
constexpr std::uint64_t kMostSeconds = 300;

void checkStoreClock(const StoreFacts& store, Findings& findings) {
  if (store.ended == StoreStep::kClock || store.clock_off.value_or(0) <= kMostSeconds) return;
  findings.add({.severity = Severity::kWarning,
                .code = "storage.clock-off",
                .what = fmt::format("This clock is {} s {} that of {}.", *store.clock_off,
                                    store.behind ? "behind" : "ahead of", store.endpoint),
                .evidence = {{"header Date", fmt::format("{} s {}", *store.clock_off,
                                                         store.behind ? "later" : "earlier")}},
                .cause = "The clock of this host or of the store is not synchronized.",
                .fix = "systemctl enable --now chronyd; chronyc tracking",
                .gain = "Requests stay valid: S3 refuses those that are 15 minutes off."});
}

void checkStore(const StoreFacts& store, Findings& findings) {
  checkStoreClock(store, findings);
  if (store.ended != StoreStep::kWorks) return addStoreFault(store, findings);
  findings.fine(store.bucket.empty()
                    ? fmt::format("{} answers and accepts the keys.", store.endpoint)
                    : sentence(fmt::format("{} exists and can be listed", storeText(store))));
}

}  // namespace

void checkStorage(const Node& node, Findings& findings) {
  if (node.live.paths.empty() && node.live.stores.empty())
    findings.fine("No path and no object store to look at (--path, --bucket).");
  for (const PathFacts& path : node.live.paths) checkPath(path, node.tree, findings);
  for (const StoreFacts& store : node.live.stores) checkStore(store, findings);
}

}  // namespace viaduct::diag
