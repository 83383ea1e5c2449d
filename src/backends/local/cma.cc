#include "backends/local/cma.h"

#include <poll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

namespace viaduct::local {
namespace {

iovec piece(std::uint64_t address, std::uint64_t bytes) {
  return {.iov_base = pointerTo(address), .iov_len = bytes};
}

// Advances the front of a list by `bytes`. Returns the number of finished entries.
std::size_t advance(std::span<iovec> list, std::size_t bytes) {
  std::size_t finished = 0;
  while (finished < list.size() && bytes >= list[finished].iov_len)
    bytes -= list[finished++].iov_len;
  if (finished < list.size()) {
    iovec& front = list[finished];
    front = piece(reinterpret_cast<std::uint64_t>(front.iov_base) + bytes, front.iov_len - bytes);
  }
  return finished;
}

// The kernel's coarse clock, with ticks of 1 to 10 ms, at a quarter of the exact clock's price.
std::int64_t tickNow() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

ssize_t copyOnce(const CmaTarget& target, OpKind kind, std::span<const iovec> local,
                 std::span<const iovec> remote) {
  const auto copy = kind == OpKind::kWrite ? ::process_vm_writev : ::process_vm_readv;
  return copy(target.pid, local.data(), local.size(), remote.data(), remote.size(), 0);
}

}  // namespace

base::Fd openPidfd(int pid) {
  return base::Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

bool processIsDead(int pidfd) {
  pollfd watch{.fd = pidfd, .events = POLLIN, .revents = 0};
  return pidfd >= 0 && ::poll(&watch, 1, 0) == 1 && (watch.revents & POLLIN) != 0;
}

void CmaBatch::add(std::uint64_t local, std::uint64_t remote, std::uint64_t bytes) {
  local_[count_] = piece(local, bytes);
  remote_[count_] = piece(remote, bytes);
  ++count_;
}

// Checks once per tick whether the pid may name another process. The kernel reuses a dead process's
// pid only after all other pids, by default 32,768 (kernel.pid_max), which takes longer than a
// tick.
bool CmaBatch::mayBeAnother(const CmaTarget& target) {
  const std::int64_t now = tickNow();
  if (target.pid == seen_pid_ && now == seen_at_) return false;
  if (processIsDead(target.pidfd)) return true;
  seen_pid_ = target.pid;
  seen_at_ = now;
  return false;
}

Fault CmaBatch::call(const CmaTarget& target, OpKind kind) {
  const std::size_t count = std::exchange(count_, 0);
  std::span<iovec> local(local_.data(), count);
  std::span<iovec> remote(remote_.data(), count);
  if (mayBeAnother(target)) return {Fault::Cause::kPeerDead};
  while (!local.empty()) {
    const ssize_t moved = copyOnce(target, kind, local, remote);
    if (moved < 0 && errno == EINTR) continue;
    if (moved <= 0)
      return {kind == OpKind::kWrite ? Fault::Cause::kWrite : Fault::Cause::kRead,
              moved < 0 ? errno : EFAULT};
    const std::size_t finished = advance(local, static_cast<std::size_t>(moved));
    advance(remote, static_cast<std::size_t>(moved));
    local = local.subspan(finished);
    remote = remote.subspan(finished);
  }
  return {};
}

Status probe(const CmaTarget& target, std::uint64_t token, std::uint64_t scratch,
             std::span<const std::uint8_t> expected) {
  std::vector<std::uint8_t> seen(expected.size());
  const auto whole = static_cast<ssize_t>(expected.size());
  const auto local = [&] {
    return std::array{piece(reinterpret_cast<std::uint64_t>(seen.data()), seen.size())};
  };
  const auto refused = [](const char* name, ssize_t moved) {
    return moved < 0 ? systemError(Code::kDenied, name, errno)
                     : Error{Code::kDenied, name, "copied less than asked"};
  };
  const ssize_t got =
      copyOnce(target, OpKind::kRead, local(), std::array{piece(token, expected.size())});
  if (got != whole) return refused("process_vm_readv", got);
  if (std::memcmp(seen.data(), expected.data(), seen.size()) != 0)
    return Error{Code::kDenied, "process_vm_readv", "the peer's pid names another process here"};
  const ssize_t put =
      copyOnce(target, OpKind::kWrite, local(), std::array{piece(scratch, expected.size())});
  if (put != whole) return refused("process_vm_writev", put);
  // If the peer is dead now, its pid may have named another process during the whole probe.
  if (processIsDead(target.pidfd)) return Error{Code::kPeerLost, "probe", "the peer has died"};
  return Ok{};
}

}  // namespace viaduct::local
