#include "base/shared_library.h"

#include <dlfcn.h>
#include <link.h>

#include <cstddef>

namespace viaduct::base {

// The program itself is the first object in the loader's list, also in a static program.
bool loadsLibraries() {
  const auto wants_loader = [](dl_phdr_info* program, std::size_t, void*) {
    for (std::size_t i = 0; i < program->dlpi_phnum; ++i)
      if (program->dlpi_phdr[i].p_type == PT_INTERP) return 1;
    return -1;
  };
  static const bool loads = ::dl_iterate_phdr(wants_loader, nullptr) == 1;
  return loads;
}

Result<SharedLibrary> SharedLibrary::open(const std::string& name) {
  if (!loadsLibraries())
    return Error{.code = Code::kUnsupported,
                 .operation = "load " + name,
                 .detail = "this program is one static file, which loads no library",
                 .remedy = "use the program viaduct, which is not static"};
  if (void* const handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL); handle != nullptr)
    return SharedLibrary(handle);
  const char* const why = ::dlerror();
  return Error{.code = Code::kUnsupported,
               .operation = "load " + name,
               .detail = why == nullptr ? "dlopen failed" : why};
}

void* SharedLibrary::find(const char* name) const { return ::dlsym(handle_, name); }

}  // namespace viaduct::base
