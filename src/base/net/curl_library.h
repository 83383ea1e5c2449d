// Loads libcurl at its first use, and never unloads it. A program that uses neither etcd nor
// objects does not load the thirty libraries that libcurl needs. Threads: any.
#pragma once

#include <curl/curl.h>
#include <viaduct/result.h>

#include <string>

// clang-format off
#define VIADUCT_CURL_FUNCTIONS(F)                                                                 \
  F(curl_global_init) F(curl_version_info)                                                        \
  F(curl_easy_init) F(curl_easy_cleanup) F(curl_easy_setopt) F(curl_easy_getinfo)                 \
  F(curl_easy_reset) F(curl_easy_strerror) F(curl_easy_perform)                                   \
  F(curl_slist_append) F(curl_slist_free_all)                                                     \
  F(curl_multi_init) F(curl_multi_cleanup) F(curl_multi_add_handle) F(curl_multi_remove_handle)   \
  F(curl_multi_perform) F(curl_multi_poll) F(curl_multi_info_read) F(curl_multi_wakeup)           \
  F(curl_multi_setopt)
// clang-format on

namespace viaduct::base {

// The used functions, under their own names.
struct CurlLibrary {
// NOLINTNEXTLINE(bugprone-macro-parentheses): a member's name
#define VIADUCT_CURL_MEMBER(name) decltype(&::name) name = nullptr;
  VIADUCT_CURL_FUNCTIONS(VIADUCT_CURL_MEMBER)
#undef VIADUCT_CURL_MEMBER
  std::string version = {};  // "7.88.1"
};

// The initialised libcurl of this process. kUnsupported: not installed, or too old.
Result<const CurlLibrary*> curlLibrary();
// "libcurl 7.88.1", or the reason why it is not loaded.
std::string curlVersion();

}  // namespace viaduct::base
