// Loads libcurl when an etcd is first used, and never unloads it. So a program that meets elsewhere
// does not load the thirty libraries that libcurl needs. Threads: any.
#pragma once

#include <curl/curl.h>
#include <viaduct/result.h>

// clang-format off
#define VIADUCT_CURL_FUNCTIONS(F)                                                                 \
  F(curl_global_init) F(curl_version_info)                                                        \
  F(curl_easy_init) F(curl_easy_cleanup) F(curl_easy_setopt) F(curl_easy_getinfo)                 \
  F(curl_easy_strerror) F(curl_slist_append) F(curl_slist_free_all)                               \
  F(curl_multi_init) F(curl_multi_cleanup) F(curl_multi_add_handle) F(curl_multi_remove_handle)   \
  F(curl_multi_perform) F(curl_multi_poll) F(curl_multi_info_read)
// clang-format on

namespace viaduct::meet::etcd {

// The used functions, under their own names.
struct CurlLibrary {
// NOLINTNEXTLINE(bugprone-macro-parentheses): a member's name
#define VIADUCT_CURL_MEMBER(name) decltype(&::name) name = nullptr;
  VIADUCT_CURL_FUNCTIONS(VIADUCT_CURL_MEMBER)
#undef VIADUCT_CURL_MEMBER
};

// The initialised libcurl of this process. kUnsupported: not installed, or too old.
Result<const CurlLibrary*> library();

}  // namespace viaduct::meet::etcd
