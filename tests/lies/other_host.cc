// Preloaded into a member: reports another boot id, so that two processes of one host take each
// other for two hosts. With LIE_NETWORK=eth0,eth1, /proc/net/dev exchanges the bytes of two
// interfaces.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

using Open = int (*)(const char*, int, ...);

// Exchanges two names, which end with colons. If only the first one is there, it gets a line of its
// own without traffic.
void exchange(std::string& text, const std::string& one, const std::string& other) {
  const auto at = text.find(one), there = text.find(other);
  if (at == std::string::npos) return;
  if (there == std::string::npos) {
    text.replace(at, one.size(), other);
    text += one + " 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n";
    return;
  }
  text.replace(std::max(at, there), at > there ? one.size() : other.size(),
               at > there ? other : one);
  text.replace(std::min(at, there), at > there ? other.size() : one.size(),
               at > there ? one : other);
}

// Returns a file with the true text, in which the two interfaces of "eth0,eth1" change places.
int exchanged(int real, std::string_view names) {
  std::string text;
  std::array<char, 4096> part{};
  for (ssize_t got = 0; (got = ::read(real, part.data(), part.size())) > 0;)
    text.append(part.data(), static_cast<std::size_t>(got));
  ::close(real);
  const auto comma = names.find(',');
  exchange(text, " " + std::string(names.substr(0, comma)) + ":",
           " " + std::string(names.substr(comma + 1)) + ":");
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
  const char* const names = std::getenv("LIE_NETWORK");
  if (std::string_view(path) == "/proc/net/dev" && names != nullptr)
    return exchanged(real(path, flags, mode), names);
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
