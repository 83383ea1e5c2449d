#include "diag/live.h"

#include <fmt/format.h>
#include <sys/klog.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <thread>

#include "base/lists.h"
#include "base/net/address.h"
#include "base/net/aead.h"
#include "base/net/lookup.h"
#include "base/shared_library.h"
#include "base/text.h"
#include "diag/counters.h"
#include "diag/libraries.h"
#include "diag/live_storage.h"
#include "host/interfaces.h"
#include "host/io_uring.h"

namespace viaduct::diag {
namespace {

Tried failed(int error) { return {.ok = false, .text = ::strerror(error)}; }

// Runs `test` in a child process. Its exit status is an errno; 0: success.
template <class F>
Tried inChild(F test) {
  const pid_t child = ::fork();
  if (child < 0) return failed(errno);
  if (child == 0) ::_exit(test());
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status)) return {.ok = false, .text = "the test ended by a signal"};
  return WEXITSTATUS(status) == 0 ? Tried{.ok = true} : failed(WEXITSTATUS(status));
}

// One child reads the other's memory, as processes of one job do. The parent would prove nothing,
// because it may read its children even if siblings may not.
Tried tryCopy() {
  static std::array<char, 64> word{"viaduct"};
  std::array<int, 2> end{};
  if (::pipe(end.data()) != 0) return failed(errno);
  const pid_t owner = ::fork();
  if (owner == 0) {
    ::close(end[1]);
    char none = 0;
    ::_exit(::read(end[0], &none, 1) == 0 ? 0 : 1);  // waits until the parent closes its end
  }
  ::close(end[0]);
  Tried out = owner < 0 ? failed(errno) : inChild([&] {
    std::array<char, 64> seen{};
    const iovec here{seen.data(), seen.size()}, there{word.data(), word.size()};
    const ssize_t got = ::process_vm_readv(owner, &here, 1, &there, 1, 0);
    if (got < 0) return errno;
    return seen == word ? 0 : EIO;
  });
  ::close(end[1]);
  if (owner > 0) ::waitpid(owner, nullptr, 0);
  return out;
}

Tried triedFrom(int error) { return error == 0 ? Tried{.ok = true} : failed(error); }

void tryIoUring(Live& out) {
  const host::RingTrial trial = host::tryRing();
  out.io_uring = triedFrom(trial.open);
  if (trial.open == 0)
    out.io_uring_buffers = triedFrom(trial.reserve != 0 ? trial.reserve : trial.registration);
}

std::optional<std::uint64_t> namespaceNumber(const std::string& kind) {
  struct stat facts{};
  if (::stat(("/proc/self/ns/" + kind).c_str(), &facts) != 0) return std::nullopt;
  return facts.st_ino;
}

Tried tryCipher(base::AeadKind kind) {
  const auto made = base::makeCryptoAead(kind, base::AeadUse::kSeal);
  return {.ok = bool(made), .text = made ? "" : made.error().detail};
}

Tried lookAtClock() {
  timex state{};
  const int code = ::adjtimex(&state);
  if (code < 0) return failed(errno);
  const bool good = code != TIME_ERROR && (state.status & STA_UNSYNC) == 0;
  return {.ok = good,
          .text = fmt::format("{}, estimated error {} us",
                              good ? "synchronized" : "not synchronized", state.esterror)};
}

Tried readKernelLog() {
  constexpr int kReadAll = 3, kSize = 10;
  const int size = ::klogctl(kSize, nullptr, 0);
  if (size < 0) return failed(errno);
  std::string text(static_cast<std::size_t>(size), '\0');
  const int got = ::klogctl(kReadAll, text.data(), size);
  if (got < 0) return failed(errno);
  text.resize(static_cast<std::size_t>(got));
  return {.ok = true, .text = std::move(text)};
}

// The host names in variables that name a meeting place.
std::vector<std::string> namesIn(const Variables& variables) {
  std::vector<std::string> out;
  for (const char* variable :
       {"VIADUCT_MEET", "NIXL_ETCD_ENDPOINTS", "ETCD_ENDPOINTS", "NIXL_TCPSTORE_ENDPOINT"})
    if (const std::string* const value = base::valueAt(variables, variable))
      for (std::string& name : base::partsOf(*value)) {
        for (const std::string_view scheme : {"embedded:", "etcd:", "tcpstore:"})
          if (name.starts_with(scheme)) name.erase(0, scheme.size());
        // This text names no host: a pod's environment has the address of the API server.
        if (!name.starts_with("kubernetes:")) out.push_back(std::move(name));
      }
  return out;
}

// The host of "http://user:word@etcd.default:2379/", without password and path.
base::HostPort hostIn(std::string text) {
  if (const auto scheme = text.find("://"); scheme != std::string::npos) text.erase(0, scheme + 3);
  text.resize(std::min(text.find('/'), text.size()));
  if (const auto at = text.rfind('@'); at != std::string::npos) text.erase(0, at + 1);
  const auto where = base::parseHostPort(text);
  return where ? *where : base::HostPort{.host = text};
}

Tried resolved(const base::HostPort& where) {
  constexpr std::chrono::seconds kLimit{3};
  const auto found = base::resolve(where, Clock::now() + kLimit);
  if (!found) return {.ok = false, .text = found.error().detail};
  return {.ok = true, .text = found->empty() ? "" : found->front().text()};
}

std::map<std::string, std::uint64_t> valuesOf(const Tree& tree,
                                              const std::vector<std::string>& paths) {
  std::map<std::string, std::uint64_t> out;
  for (const std::string& path : paths)
    if (const auto value = counterValue(tree, path)) out[path] = *value;
  return out;
}

}  // namespace

Live collectLive(const Tree& tree, const Variables& variables, const LiveOptions& options) {
  const auto paths = counterPaths(tree);
  const auto before = valuesOf(tree, paths);
  const auto start = Clock::now();
  Live out;
  utsname system{};
  if (::uname(&system) == 0) {
    out.hostname = system.nodename;
    out.kernel = system.release;
    out.machine = system.machine;
  }
  out.uid = ::geteuid();
  out.ipc_namespace = namespaceNumber("ipc");
  out.pid_namespace = namespaceNumber("pid");
  out.copy = tryCopy();
  tryIoUring(out);
  struct statvfs shm{};
  if (::statvfs("/dev/shm", &shm) == 0) {
    out.shm_bytes = shm.f_blocks * shm.f_frsize;
    out.shm_free = shm.f_bavail * shm.f_frsize;
  }
  out.aes_gcm = tryCipher(base::AeadKind::kAesGcm);
  out.chacha = tryCipher(base::AeadKind::kChaCha);
  out.one_file = !base::loadsLibraries();
  if (!out.one_file) out.ipsec_mb = Tried{.ok = base::makeIpsecAead() != nullptr};
  out.aes_instructions = Tried{.ok = base::hasFastAes()};
  out.clock = lookAtClock();
  out.kernel_log = readKernelLog();
  out.addresses = host::interfaceAddresses();
  std::erase_if(out.addresses, [](const auto& one) { return one.address.empty(); });
  out.links = host::linkFacts();
  out.libraries = findLibraries(tree, variables);
  std::vector<std::string> names = namesIn(variables);
  names.insert(names.end(), options.names.begin(), options.names.end());
  for (const std::string& name : names)
    if (const base::HostPort where = hostIn(name); !where.host.empty())
      out.names[where.host] = resolved(where);
  for (const std::string& path : options.paths) out.paths.push_back(lookAtPath(path));
  out.stores = lookAtStores(options.buckets);
  if (before.empty()) return out;
  std::this_thread::sleep_until(start + options.counting);
  for (const auto& [path, value] : valuesOf(tree, paths))
    if (const auto old = before.find(path); old != before.end() && value > old->second)
      out.grown[path] = value - old->second;
  out.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return out;
}

}  // namespace viaduct::diag
