// A library that is loaded by who uses it, and not by who links Viaduct. Threads: any.
#pragma once

#include <viaduct/result.h>

#include <string>

namespace viaduct::base {

// It is never let go: what it has started in the process could not run on without it.
class SharedLibrary {
 public:
  // `name` as the loader looks for it: "libfabric.so.1". kUnsupported, with the loader's reason.
  static Result<SharedLibrary> open(const std::string& name);

  // False: it has no such function, and `into` is null.
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
