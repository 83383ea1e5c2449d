// A library that its user loads at run time, so that linking Viaduct does not need it. Threads:
// any.
#pragma once

#include <viaduct/result.h>

#include <string>

namespace viaduct::base {

// False in a static program, which has no loader. A library would bring a second C library into it.
bool loadsLibraries();

// Never unloaded, because threads and hooks that the library started need its code.
class SharedLibrary {
 public:
  // The loader resolves `name`, such as "libfabric.so.1". kUnsupported has the loader's reason, or
  // says that this program loads no libraries.
  static Result<SharedLibrary> open(const std::string& name);

  // False: the library has no such function, and `into` is null.
  template <class Function>
  bool bind(const char* name, Function*& into) const {
    into = reinterpret_cast<Function*>(find(name));
    return into != nullptr;
  }

 private:
  explicit SharedLibrary(void* handle) : handle_(handle) {}
  void* find(const char* name) const;

  void* handle_;
};

}  // namespace viaduct::base
