// Preloaded into a member: its host has another boot id, so that two processes of one host take
// themselves for two hosts.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace {

using Open = std::FILE* (*)(const char*, const char*);

std::FILE* opened(const char* name, const char* path, const char* mode) {
  const auto real = reinterpret_cast<Open>(::dlsym(RTLD_NEXT, name));
  const char* const forged = std::getenv("LIE_BOOT_ID");  // a file
  const bool asked = std::string_view(path).ends_with("/proc/sys/kernel/random/boot_id");
  return real(asked && forged != nullptr ? forged : path, mode);
}

}  // namespace

extern "C" std::FILE* fopen(const char* path, const char* mode) {
  return opened("fopen", path, mode);
}
extern "C" std::FILE* fopen64(const char* path, const char* mode) {
  return opened("fopen64", path, mode);
}
