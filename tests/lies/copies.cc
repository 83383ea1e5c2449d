// Preloaded into the program: copies between processes that go wrong but report success.
// LIE sets the kind of fault, LIE_PART the fraction of faulty copies: 0.5. LIE_WHEN limits the
// faults to some copies:
//   thread: copies by other threads than the main one
//   overlap: copies while another one runs
//   row: copies from the 64th on that follow each other without a pause
//   close: copies that follow the one before within 50 us
//   same: copies whose local memory has the same bytes as at its last copy
// The kinds of LIE:
//   skip: copies nothing           short: leaves out the last half
//   swap: exchanges the first two pieces     shift: moves all bytes up by 8
//   stale: repeats the bytes of an earlier copy    flip: flips one bit
//   hollow: copies the first and the last 64 bytes only
//   late: copies all, and takes longer by the part LIE_LATE: 0.05. It is no lie, but a slow copy
#include <dlfcn.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using Pieces = std::vector<iovec>;
using Copy = ssize_t (*)(pid_t, const iovec*, unsigned long, const iovec*, unsigned long,
                         unsigned long);

std::string_view variable(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

bool lies() {
  static const double part = std::strtod(std::string(variable("LIE_PART")).c_str(), nullptr);
  // Global, because each row's rounds have new threads, which continue the numbers.
  static std::atomic<std::uint64_t> count{static_cast<std::uint64_t>(::getpid()) << 32U};
  std::uint64_t dice = (count.fetch_add(1) + 1) * 0x9e3779b97f4a7c15U;
  dice = (dice ^ (dice >> 30U)) * 0xbf58476d1ce4e5b9U;
  dice = (dice ^ (dice >> 27U)) * 0x94d049bb133111ebU;
  return static_cast<double>((dice ^ (dice >> 31U)) >> 11U) * 0x1.0p-53 < part;
}

using Clock = std::chrono::steady_clock;

// The copies that are running, and the time of the last one.
std::atomic<int> running{0};
std::atomic<Clock::rep> last_end{0};

bool followsWithin(std::chrono::nanoseconds pause) {
  return Clock::now().time_since_epoch() - Clock::duration(last_end.load()) < pause;
}

bool isInALongRow() {
  static std::atomic<int> row{0};
  if (!followsWithin(std::chrono::milliseconds(1))) row = 0;
  return ++row >= 64;
}

// True if the local memory has the same bytes as at the last copy to or from it.
bool repeats(const Pieces& local) {
  static std::mutex mutex;
  static std::map<const void*, std::uint64_t> known;
  std::uint64_t hash = 1;
  for (const iovec& piece : local)
    hash = hash * 31 +
           std::hash<std::string_view>()({static_cast<const char*>(piece.iov_base), piece.iov_len});
  const std::lock_guard held(mutex);
  return std::exchange(known[local[0].iov_base], hash) == hash;
}

bool isTime(const Pieces& local) {
  const std::string_view when = variable("LIE_WHEN");
  if (when == "thread") return ::gettid() != ::getpid();
  if (when == "overlap") return running.load() > 1;
  if (when == "row") return isInALongRow();
  if (when == "close") return followsWithin(std::chrono::microseconds(50));
  if (when == "same") return repeats(local);
  return true;
}

std::size_t bytesOf(const Pieces& pieces) {
  std::size_t bytes = 0;
  for (const iovec& piece : pieces) bytes += piece.iov_len;
  return bytes;
}

std::byte* start(const iovec& piece) { return static_cast<std::byte*>(piece.iov_base); }

// The pieces without their first `bytes` bytes.
Pieces without(Pieces pieces, std::size_t bytes) {
  while (bytes >= pieces.front().iov_len) {
    bytes -= pieces.front().iov_len;
    pieces.erase(pieces.begin());
  }
  pieces.front() = {start(pieces.front()) + bytes, pieces.front().iov_len - bytes};
  return pieces;
}

Pieces first(Pieces pieces, std::size_t bytes) {
  Pieces out;
  for (iovec piece : pieces) {
    piece.iov_len = std::min(piece.iov_len, bytes);
    bytes -= piece.iov_len;
    if (piece.iov_len != 0) out.push_back(piece);
  }
  return out;
}

class Lie {
 public:
  Lie(Copy real, pid_t pid, bool writes) : real_(real), pid_(pid), writes_(writes) {}

  void tell(std::string_view kind, const Pieces& local, const Pieces& remote) {
    const std::size_t bytes = bytesOf(local);
    if (kind == "short") copy(first(local, bytes / 2), first(remote, bytes / 2));
    if (kind == "shift") copy(first(local, bytes - 8), without(remote, 8));
    if (kind == "swap") swap(local, remote);
    if (kind == "stale") stale(local, remote);
    if (kind == "flip") flip(local, remote);
    if (kind == "hollow") hollow(local, remote);
    if (kind == "late") late(local, remote);
  }

 private:
  void copy(const Pieces& local, const Pieces& remote) const {
    real_(pid_, local.data(), local.size(), remote.data(), remote.size(), 0);
  }
  void swap(Pieces local, const Pieces& remote) const {
    if (local.size() > 1) std::swap(local[0], local[1]);
    copy(local, remote);
  }
  // Repeats the bytes of an earlier write while writes of its length follow. Copies other calls
  // honestly, and keeps their bytes.
  void stale(const Pieces& local, const Pieces& remote) const {
    static std::vector<std::byte> before;
    if (!writes_ || before.size() != bytesOf(local)) {
      before.clear();
      for (const iovec& piece : local)
        before.insert(before.end(), start(piece), start(piece) + piece.iov_len);
      return copy(local, remote);
    }
    copy({{before.data(), before.size()}}, remote);
  }
  void hollow(const Pieces& local, const Pieces& remote) const {
    constexpr std::size_t kEdge = 64;
    copy(first(local, kEdge), first(remote, kEdge));
    copy(without(local, bytesOf(local) - kEdge), without(remote, bytesOf(remote) - kEdge));
  }
  void late(const Pieces& local, const Pieces& remote) const {
    static const double part = std::strtod(std::string(variable("LIE_LATE")).c_str(), nullptr);
    const auto began = Clock::now();
    copy(local, remote);
    const std::chrono::duration<double> took = Clock::now() - began;
    while (Clock::now() - began < took * (1 + part)) continue;
  }
  void flip(const Pieces& local, const Pieces& remote) const {
    copy(local, remote);
    std::byte one = *start(local[0]) ^ std::byte{4};
    const Pieces here{{&one, 1}};
    if (writes_)
      copy(here, first(remote, 1));
    else
      *start(local[0]) ^= std::byte{4};
  }

  const Copy real_;
  const pid_t pid_;
  const bool writes_;
};

ssize_t copied(const char* name, pid_t pid, const iovec* local, unsigned long locals,
               const iovec* remote, unsigned long remotes, unsigned long flags) {
  const auto real = reinterpret_cast<Copy>(::dlsym(RTLD_NEXT, name));
  const Pieces here(local, local + locals), there(remote, remote + remotes);
  // Short copies are a backend's probe, and stay honest.
  if (bytesOf(here) < 4096) return real(pid, local, locals, remote, remotes, flags);
  ++running;
  ssize_t copied = static_cast<ssize_t>(bytesOf(here));
  if (isTime(here) && lies())
    Lie(real, pid, std::string_view(name) == "process_vm_writev")
        .tell(variable("LIE"), here, there);
  else
    copied = real(pid, local, locals, remote, remotes, flags);
  last_end = Clock::now().time_since_epoch().count();
  --running;
  return copied;
}

}  // namespace

extern "C" ssize_t process_vm_writev(pid_t pid, const iovec* local, unsigned long locals,
                                     const iovec* remote, unsigned long remotes,
                                     unsigned long flags) {
  return copied("process_vm_writev", pid, local, locals, remote, remotes, flags);
}

extern "C" ssize_t process_vm_readv(pid_t pid, const iovec* local, unsigned long locals,
                                    const iovec* remote, unsigned long remotes,
                                    unsigned long flags) {
  return copied("process_vm_readv", pid, local, locals, remote, remotes, flags);
}
