// Preloaded into the program: copies between processes that are skipped, and reported as done.
// LIE_SKIP is the part of them that is skipped: 0.5.
#include <dlfcn.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>

namespace {

using Copy = ssize_t (*)(pid_t, const iovec*, unsigned long, const iovec*, unsigned long,
                         unsigned long);

bool skips() {
  static const double part = [] {
    const char* text = std::getenv("LIE_SKIP");
    return text == nullptr ? 0.0 : std::strtod(text, nullptr);
  }();
  // A row's rounds have threads of their own: the numbers go on from one to the next.
  static std::atomic<std::uint64_t> count{static_cast<std::uint64_t>(::getpid()) << 32U};
  std::uint64_t dice = (count.fetch_add(1) + 1) * 0x9e3779b97f4a7c15U;
  dice = (dice ^ (dice >> 30U)) * 0xbf58476d1ce4e5b9U;
  dice = (dice ^ (dice >> 27U)) * 0x94d049bb133111ebU;
  return static_cast<double>((dice ^ (dice >> 31U)) >> 11U) * 0x1.0p-53 < part;
}

ssize_t copy(const char* name, pid_t pid, const iovec* local, unsigned long locals,
             const iovec* remote, unsigned long remotes, unsigned long flags) {
  ssize_t bytes = 0;
  for (unsigned long i = 0; i < locals; ++i) bytes += static_cast<ssize_t>(local[i].iov_len);
  // Few bytes are a backend that looks whether it may.
  if (bytes >= 4096 && skips()) return bytes;
  const auto real = reinterpret_cast<Copy>(::dlsym(RTLD_NEXT, name));
  return real(pid, local, locals, remote, remotes, flags);
}

}  // namespace

extern "C" ssize_t process_vm_writev(pid_t pid, const iovec* local, unsigned long locals,
                                     const iovec* remote, unsigned long remotes,
                                     unsigned long flags) {
  return copy("process_vm_writev", pid, local, locals, remote, remotes, flags);
}

extern "C" ssize_t process_vm_readv(pid_t pid, const iovec* local, unsigned long locals,
                                    const iovec* remote, unsigned long remotes,
                                    unsigned long flags) {
  return copy("process_vm_readv", pid, local, locals, remote, remotes, flags);
}
