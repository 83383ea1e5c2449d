#include "base/shared_library.h"

#include <dlfcn.h>

namespace viaduct::base {

Result<SharedLibrary> SharedLibrary::open(const std::string& name) {
  if (void* const handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL); handle != nullptr)
    return SharedLibrary(handle);
  const char* const why = ::dlerror();
  return Error{.code = Code::kUnsupported,
               .operation = "load " + name,
               .detail = why == nullptr ? "dlopen failed" : why};
}

void* SharedLibrary::find(const char* name) const { return ::dlsym(handle_, name); }

}  // namespace viaduct::base
