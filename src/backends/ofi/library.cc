#include "backends/ofi/library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <string_view>
#include <utility>

#include "base/kept_signals.h"

namespace viaduct::ofi {
namespace {

Error cannotLoad(std::string detail) {
  return {.code = Code::kUnsupported,
          .operation = "load libfabric.so.1",
          .detail = std::move(detail),
          .device = "ofi",
          .cause = "libfabric is not installed here, or is older than what is needed",
          .remedy = fmt::format("install libfabric {}.{} or newer (Debian and Ubuntu: "
                                "libfabric1), or leave ofi out of the backends",
                                FI_MAJOR(kSpoken), FI_MINOR(kSpoken))};
}

template <class F>
bool bind(void* from, const char* name, F& into) {
  into = reinterpret_cast<F>(::dlsym(from, name));
  return into != nullptr;
}

Result<Library> load() {
  const base::KeptSignals kept;  // psm and psm2 take SIGINT and SIGTERM, among others
  void* const handle = ::dlopen("libfabric.so.1", RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const why = ::dlerror();
    return cannotLoad(why == nullptr ? "dlopen failed" : why);
  }
  Library out;
#define VIADUCT_OFI_BIND(name) \
  if (!bind(handle, #name, out.name)) return cannotLoad("it has no " #name);
  VIADUCT_OFI_FUNCTIONS(VIADUCT_OFI_BIND)
#undef VIADUCT_OFI_BIND
  const std::uint32_t there = out.fi_version();
  if (FI_VERSION_LT(there, kSpoken))
    return cannotLoad(fmt::format("this is {}.{}; {}.{} is needed", FI_MAJOR(there),
                                  FI_MINOR(there), FI_MAJOR(kSpoken), FI_MINOR(kSpoken)));
  const char* const text = out.fi_tostr("", FI_TYPE_VERSION);
  out.version = text != nullptr ? text : fmt::format("{}.{}", FI_MAJOR(there), FI_MINOR(there));
  return out;
}

const Result<Library>& loaded() {
  static const Result<Library> the_library = load();
  return the_library;
}

}  // namespace

Result<const Library*> library() {
  const Result<Library>& one = loaded();
  if (!one) return one.error();
  return &*one;
}

Error ofiError(Code code, std::string operation, std::int64_t status, std::string device) {
  const auto& one = loaded();
  return {.code = code,
          .operation = std::move(operation),
          .detail = one ? one->fi_strerror(static_cast<int>(-status)) : "libfabric is not there",
          .device = std::move(device)};
}

void FreeInfo::operator()(fi_info* info) const noexcept {
  if (const auto& one = loaded(); one) one->fi_freeinfo(info);
}

std::string environmentText() {
  std::string out;
  for (char** one = environ; one != nullptr && *one != nullptr; ++one)
    if (std::string_view(*one).starts_with("FI_"))
      out += (out.empty() ? "" : " ") + std::string(*one);
  return out;
}

}  // namespace viaduct::ofi
