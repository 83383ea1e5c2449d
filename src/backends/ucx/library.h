// Loads UCX's library at its first use, and never unloads it. UCX installs signal handlers and
// starts threads, so a program that does not use ucx must not load it. Threads: any.
#pragma once

#include <ucp/api/ucp.h>
#include <ucs/debug/log_def.h>
#include <viaduct/result.h>

#include <cstdio>
#include <cstdlib>
#include <string>

// clang-format off
#define VIADUCT_UCX_FUNCTIONS(F)                                                                  \
  F(ucp_get_version) F(ucp_get_version_string) F(ucp_config_read) F(ucp_config_modify)            \
  F(ucp_config_release) F(ucp_config_print) F(ucp_init_version) F(ucp_cleanup)                    \
  F(ucp_context_print_info) F(ucp_context_query)                                                  \
  F(ucp_worker_create) F(ucp_worker_destroy) F(ucp_worker_query) F(ucp_worker_get_address)        \
  F(ucp_worker_release_address) F(ucp_worker_progress) F(ucp_worker_get_efd) F(ucp_worker_arm)    \
  F(ucp_ep_create) F(ucp_ep_close_nbx) F(ucp_ep_flush_nbx) F(ucp_ep_print_info) F(ucp_mem_map)    \
  F(ucp_mem_unmap) F(ucp_rkey_pack) F(ucp_rkey_buffer_release) F(ucp_ep_rkey_unpack)              \
  F(ucp_rkey_destroy) F(ucp_put_nbx) F(ucp_get_nbx) F(ucp_am_send_nbx)                            \
  F(ucp_worker_set_am_recv_handler) F(ucp_request_check_status)                                   \
  F(ucp_request_free) F(ucs_status_string) F(ucs_log_push_handler)
// clang-format on

namespace viaduct::ucx {

// The functions that we use, by their own names.
struct UcxLibrary {
// NOLINTNEXTLINE(bugprone-macro-parentheses): a member's name
#define VIADUCT_UCX_MEMBER(name) decltype(&::name) name = nullptr;
  VIADUCT_UCX_FUNCTIONS(VIADUCT_UCX_MEMBER)
#undef VIADUCT_UCX_MEMBER
  unsigned major = 0, minor = 0;
  std::string version = {};  // "1.13.1"
};

// The library of this process. kUnsupported: it is not installed, or older than the UCX of this
// build.
Result<const UcxLibrary*> library();
// "UCX 1.13.1", or the reason why it is not loaded.
std::string libraryVersion();

// The error of a UCX call that returned this status, with the log lines that a LogCapture has kept.
Error ucxError(Code code, std::string operation, ucs_status_t status);

// While it exists, UCX's log lines of this thread are kept for ucxError() and not printed, because
// standard output belongs to the program. UCX still prints fatal ones.
class LogCapture {
 public:
  LogCapture();
  ~LogCapture();
  LogCapture(const LogCapture&) = delete;
  LogCapture& operator=(const LogCapture&) = delete;
};

bool userHasSet(const char* variable);  // true if the environment has the variable
// The value of a UCP variable from the environment or UCX's files; empty if UCX does not know it.
std::string settingInForce(const UcxLibrary& ucx, const std::string& variable);

// The text that `print` writes to a file. Some functions of UCX have no other output.
template <class Print>
std::string printed(Print print) {
  char* text = nullptr;
  std::size_t bytes = 0;
  std::FILE* const file = ::open_memstream(&text, &bytes);
  if (file == nullptr) return {};
  print(file);
  std::fclose(file);
  std::string out(text, bytes);
  std::free(text);
  return out;
}

}  // namespace viaduct::ucx
