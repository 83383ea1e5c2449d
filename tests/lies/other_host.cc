// Preloaded into a member: reports another boot id, so that two processes of one host take each
// other for two hosts. With LIE_NETWORK, /proc/net/dev shows the bytes of loopback at an Ethernet
// device that does not exist.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <cstdarg>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

using Open = int (*)(const char*, int, ...);

// Returns a file with the true text, in which eth9 has the place of loopback.
int withoutLoopback(int real) {
  std::string text;
  std::array<char, 4096> part{};
  for (ssize_t got = 0; (got = ::read(real, part.data(), part.size())) > 0;)
    text.append(part.data(), static_cast<std::size_t>(got));
  ::close(real);
  if (const auto at = text.find(" lo:"); at != std::string::npos) text.replace(at, 4, " eth9:");
  text += "    lo: 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n";
  const int out = ::memfd_create("dev", MFD_CLOEXEC);
  if (::write(out, text.data(), text.size()) < 0) return -1;
  ::lseek(out, 0, SEEK_SET);
  return out;
}

// Only calls that may create a file pass a mode; other calls ignore it.
int opened(const char* name, const char* path, int flags, mode_t mode) {
  const auto real = reinterpret_cast<Open>(::dlsym(RTLD_NEXT, name));
  const char* const forged = std::getenv("LIE_BOOT_ID");  // a file with the boot id
  const bool asked = std::string_view(path).ends_with("/proc/sys/kernel/random/boot_id");
  if (std::string_view(path) == "/proc/net/dev" && std::getenv("LIE_NETWORK") != nullptr)
    return withoutLoopback(real(path, flags, mode));
  return real(asked && forged != nullptr ? forged : path, flags, mode);
}

mode_t modeOf(int flags, va_list& more) {
  const bool makes = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
  return makes ? va_arg(more, mode_t) : 0;
}

}  // namespace

extern "C" int open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = modeOf(flags, more);
  va_end(more);
  return opened("open", path, flags, mode);
}
extern "C" int open64(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = modeOf(flags, more);
  va_end(more);
  return opened("open64", path, flags, mode);
}
