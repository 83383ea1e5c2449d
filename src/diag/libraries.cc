#include "diag/libraries.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/fd.h"
#include "base/lists.h"
#include "base/shared_library.h"
#include "base/text.h"

namespace viaduct::diag {
namespace {

constexpr auto kNccl = "libnccl.so.2";
constexpr auto kFabricLibrary = "libfabric.so.1";
constexpr auto kUcxLibrary = "libucp.so.0";
constexpr std::array kNames{kFabricLibrary,   kUcxLibrary,    "libibverbs.so.1", kNccl,
                            "libnccl-net.so", "libcuda.so.1", "libc.so.6"};
constexpr std::array kFolders{"/opt/amazon/efa/lib",
                              "/opt/amazon/efa/lib64",
                              "/opt/aws-ofi-nccl/lib",
                              "/opt/amazon/ofi-nccl/lib",
                              "/usr/local/lib",
                              "/usr/local/ucx/lib",
                              "/lib/x86_64-linux-gnu",
                              "/usr/lib/x86_64-linux-gnu",
                              "/lib/aarch64-linux-gnu",
                              "/usr/lib/aarch64-linux-gnu",
                              "/lib64",
                              "/usr/lib64"};

// A library's version from its own function; empty: it has none that we know.
std::string versionOf(void* library) {
  if (void* const at = ::dlsym(library, "fi_version")) {
    const auto version = reinterpret_cast<std::uint32_t (*)()>(at)();
    return fmt::format("{}.{}", version >> 16U, version & 0xffffU);
  }
  if (void* const at = ::dlsym(library, "ucp_get_version_string"))
    return reinterpret_cast<const char* (*)()>(at)();
  if (void* const at = ::dlsym(library, "ncclGetVersion")) {
    int version = 0;
    if (reinterpret_cast<int (*)(int*)>(at)(&version) == 0)
      return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
  }
  return {};
}

[[noreturn]] void tellVersion(const std::string& path, int out) {
  ::alarm(5);  // seconds, for a library that never returns
  // Hides output that the library prints while it loads.
  const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  ::dup2(nowhere, 1);
  ::dup2(nowhere, 2);
  std::string text;
  if (void* const library = ::dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL))
    text = versionOf(library);
  const ssize_t written = ::write(out, text.data(), std::min<std::size_t>(text.size(), 64));
  ::_exit(written < 0 ? 1 : 0);
}

// The version at the end of "libibverbs.so.1.14.39.0"; empty: the name has none.
std::string versionInName(const std::string& path) {
  constexpr std::string_view kMark = ".so.";
  const auto at = path.rfind(kMark);
  return at == std::string::npos ? std::string() : path.substr(at + kMark.size());
}

// Loads the library in a child process, because it may crash if its hardware is missing.
std::string askVersion(const std::string& path) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return {};
  const base::Fd in(ends[0]);
  base::Fd out(ends[1]);
  const pid_t child = ::fork();
  if (child == 0) tellVersion(path, out.get());
  out = {};
  if (child < 0) return {};
  std::array<char, 64> text{};
  ssize_t got = 0;
  while ((got = ::read(in.get(), text.data(), text.size())) < 0 && errno == EINTR) {
  }
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return {text.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0))};
}

std::vector<std::string> foldersOf(const Variables& variables) {
  std::vector<std::string> out;
  if (const std::string* const path = base::valueAt(variables, "LD_LIBRARY_PATH"))
    for (std::string& folder : base::partsOf(*path, ':'))
      if (folder.starts_with('/')) out.push_back(std::move(folder));
  out.insert(out.end(), kFolders.begin(), kFolders.end());
  return out;
}

// Takes NCCL's version from its file name, because the library is too large to load without need.
// A statically linked doctor loads no library, and the file names of libfabric and UCX have no
// release version.
std::string findVersion(std::string_view name, const std::string& path) {
  std::string named = versionInName(path);
  if (name == kNccl && named.find('.') != std::string::npos) return named;
  if (!base::loadsLibraries())
    return name == kFabricLibrary || name == kUcxLibrary ? std::string() : named;
  const std::string asked = askVersion(path);
  return asked.empty() ? named : asked;
}

std::vector<Live::Library> findNamed(const Tree& tree, const Variables& variables,
                                     std::span<const char* const> names) {
  std::vector<Live::Library> out;
  std::set<std::string> seen;  // because several paths may reach one file
  for (const std::string& folder : foldersOf(variables))
    for (const char* name : names) {
      const std::string path = tree.resolve(folder + "/" + name);
      if (path.empty() || !seen.insert(path).second) continue;
      out.push_back(
          {.name = name, .path = folder + "/" + name, .version = findVersion(name, path)});
    }
  return out;
}

}  // namespace

std::vector<Live::Library> findLibraries(const Tree& tree, const Variables& variables) {
  return findNamed(tree, variables, kNames);
}

std::vector<Live::Library> findNccl(const Tree& tree, const Variables& variables) {
  return findNamed(tree, variables, std::array{kNccl});
}

std::optional<VersionNumbers> ncclVersion(const Live& live) {
  for (const Live::Library& one : live.libraries)
    if (auto numbers = versionNumbers(one.version);
        one.name.starts_with("libnccl.so") && numbers.size() >= 2)
      return numbers;
  return std::nullopt;
}

}  // namespace viaduct::diag
