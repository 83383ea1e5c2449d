// Preloaded into a member: reports another boot id, so that two processes of one host take each
// other for two hosts.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/types.h>

#include <cstdarg>
#include <cstdlib>
#include <string_view>

namespace {

using Open = int (*)(const char*, int, ...);

// Only calls that may create a file pass a mode; other calls ignore it.
int opened(const char* name, const char* path, int flags, mode_t mode) {
  const auto real = reinterpret_cast<Open>(::dlsym(RTLD_NEXT, name));
  const char* const forged = std::getenv("LIE_BOOT_ID");  // a file with the boot id
  const bool asked = std::string_view(path).ends_with("/proc/sys/kernel/random/boot_id");
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
