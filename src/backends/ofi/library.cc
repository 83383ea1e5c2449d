#include "backends/ofi/library.h"

#include <fmt/format.h>

#include <utility>

#include "base/kept_signals.h"
#include "base/shared_library.h"

namespace viaduct::ofi {
namespace {

Error cannotLoad(std::string detail) {
  return {.code = Code::kUnsupported,
          .operation = "load libfabric.so.1",
          .detail = std::move(detail),
          .device = "ofi",
          .cause = "libfabric is not installed, or is too old",
          .remedy = fmt::format("install libfabric {}.{} or newer (Debian and Ubuntu: "
                                "libfabric1), or omit ofi from the backends",
                                FI_MAJOR(kSpoken), FI_MINOR(kSpoken))};
}

Result<OfiLibrary> load() {
  const base::KeptSignals kept;  // psm and psm2 take SIGINT and SIGTERM, among others
  const auto file = base::SharedLibrary::open("libfabric.so.1");
  if (!base::loadsLibraries()) return file.error();
  if (!file) return cannotLoad(file.error().detail);
  OfiLibrary out;
#define VIADUCT_OFI_BIND(name) \
  if (!file->bind(#name, out.name)) return cannotLoad("it has no " #name);
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

}  // namespace

Result<const OfiLibrary*> library() {
  static const Result<OfiLibrary> the_library = load();
  if (!the_library) return the_library.error();
  return &*the_library;
}

std::string libraryVersion() {
  const auto ofi = library();
  return ofi ? "libfabric " + (*ofi)->version : "libfabric: " + ofi.error().detail;
}

Error ofiError(Code code, std::string operation, std::int64_t status, std::string device) {
  const auto ofi = library();
  return {.code = code,
          .operation = std::move(operation),
          .detail = ofi ? (*ofi)->fi_strerror(static_cast<int>(-status)) : "libfabric is not there",
          .device = std::move(device)};
}

void FreeInfo::operator()(fi_info* info) const noexcept {
  if (const auto ofi = library(); ofi) (*ofi)->fi_freeinfo(info);
}

}  // namespace viaduct::ofi
