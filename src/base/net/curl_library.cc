#include "base/net/curl_library.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "base/shared_library.h"

namespace viaduct::base {
namespace {

// Version 7.80 has the newest option that is required, CURLOPT_PREREQFUNCTION.
constexpr unsigned kNeeded = 0x075000;

Error cannotLoad(std::string detail) {
  return {.code = Code::kUnsupported,
          .operation = "load libcurl.so.4",
          .detail = std::move(detail),
          .cause =
              "Viaduct reaches etcd and objects through libcurl, which is not installed or too old",
          .remedy = "install libcurl 7.80 or newer (Debian and Ubuntu: libcurl4)"};
}

Result<CurlLibrary> load() {
  const auto file = SharedLibrary::open("libcurl.so.4");
  if (!loadsLibraries()) return file.error();
  if (!file) return cannotLoad(file.error().detail);
  CurlLibrary out;
#define VIADUCT_CURL_BIND(name) \
  if (!file->bind(#name, out.name)) return cannotLoad("it has no " #name);
  VIADUCT_CURL_FUNCTIONS(VIADUCT_CURL_BIND)
#undef VIADUCT_CURL_BIND
  const curl_version_info_data* const there = out.curl_version_info(CURLVERSION_NOW);
  if (there->version_num < kNeeded)
    return cannotLoad(fmt::format("this is {}; 7.80 is needed", there->version));
  if (const CURLcode code = out.curl_global_init(CURL_GLOBAL_DEFAULT); code != CURLE_OK)
    return Error{.code = Code::kDevice,
                 .operation = "curl_global_init",
                 .detail = out.curl_easy_strerror(code)};
  out.version = there->version;
  return out;
}

}  // namespace

Result<const CurlLibrary*> curlLibrary() {
  static const Result<CurlLibrary> the_library = load();
  if (!the_library) return the_library.error();
  return &*the_library;
}

std::string curlVersion() {
  const auto curl = curlLibrary();
  return "libcurl" + (curl ? " " + (*curl)->version : ": " + curl.error().detail);
}

}  // namespace viaduct::base
