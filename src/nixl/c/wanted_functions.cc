// Finds functions of NIXL that a program wants to call and this library lacks.
#include <dlfcn.h>
#include <elf.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <link.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <set>
#include <string>

#include "base/log.h"
#include "nixl/c/call.h"

namespace viaduct::nixl::c {
namespace {

constexpr char kPrefix[] = "nixl_capi_";
constexpr std::size_t kPrefixBytes = sizeof kPrefix - 1;

struct Names {
  std::uintptr_t caller = 0;
  std::set<std::string> found = {};
  std::string program = {};
};

bool isInName(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') || letter == '_';
}

// Collects the strings that begin with the prefix, as the argument of dlsym() does. Sanitizers are
// off, because they refuse reads of the gaps between strings.
__attribute__((no_sanitize("address", "thread"))) void addNames(const char* from, std::size_t bytes,
                                                                std::set<std::string>& found) {
  std::uint64_t first = 0;
  std::memcpy(&first, kPrefix, sizeof first);
  for (std::size_t at = 1; at + kPrefixBytes < bytes; ++at) {
    std::uint64_t here = 0;
    __builtin_memcpy(&here, from + at, sizeof here);
    if (here != first || from[at - 1] != '\0') continue;
    std::string name;
    while (at + name.size() < bytes && isInName(from[at + name.size()]))
      name += from[at + name.size()];
    const bool whole = at + name.size() < bytes && from[at + name.size()] == '\0';
    if (whole && name.starts_with(kPrefix) && name.size() > kPrefixBytes) found.insert(name);
  }
}

// Looks into the program or library that contains the caller.
int lookInto(dl_phdr_info* object, std::size_t /*bytes*/, void* names) {
  auto& into = *static_cast<Names*>(names);
  const auto of = [&](auto is) {
    for (int i = 0; i < object->dlpi_phnum; ++i) {
      const ElfW(Phdr)& part = object->dlpi_phdr[i];
      if (part.p_type == PT_LOAD && is(part)) return true;
    }
    return false;
  };
  const bool contains = of([&](const ElfW(Phdr) & part) {
    return into.caller - (object->dlpi_addr + part.p_vaddr) < part.p_memsz;
  });
  if (!contains) return 0;
  into.program = object->dlpi_name;
  of([&](const ElfW(Phdr) & part) {
    if ((part.p_flags & PF_W) == 0 && (part.p_flags & PF_R) != 0)
      // NOLINTNEXTLINE(performance-no-int-to-ptr): the dynamic linker gives addresses as numbers
      addNames(reinterpret_cast<const char*>(object->dlpi_addr + part.p_vaddr), part.p_filesz,
               into.found);
    return false;
  });
  return 1;
}

}  // namespace

void warnOfLackingFunctions(const void* caller) noexcept try {
  static std::atomic_flag looked;
  Dl_info own{};
  if (base::logLevel() > base::LogLevel::kWarning || looked.test_and_set()) return;
  if (::dladdr(reinterpret_cast<const void*>(&warnOfLackingFunctions), &own) == 0) return;
  void* const library = ::dlopen(own.dli_fname, RTLD_NOLOAD | RTLD_LAZY);
  if (library == nullptr) return;
  Names names{.caller = reinterpret_cast<std::uintptr_t>(caller)};
  ::dl_iterate_phdr(&lookInto, &names);
  std::erase_if(names.found,
                [&](const std::string& name) { return ::dlsym(library, name.c_str()) != nullptr; });
  ::dlclose(library);
  if (names.found.empty()) return;
  base::log(base::LogLevel::kWarning,
            "nixl: {} may call {}, which this version of Viaduct lacks, and such a call ends the "
            "program; install a newer Viaduct, or build the program with a release of nixl-sys "
            "from 1.0.1 to 1.4.0 (docs/nixl.md)",
            names.program.empty() ? "the program" : names.program, fmt::join(names.found, ", "));
} catch (...) {  // NOLINT(bugprone-empty-catch): without memory, there is no warning
}

}  // namespace viaduct::nixl::c
