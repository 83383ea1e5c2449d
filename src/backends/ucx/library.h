// UCX's own library, loaded when somebody first asks for it and never let go: whoever links Viaduct
// and does not use UCX must not get its signal handlers and its threads. Threads: any.
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
  F(ucp_context_print_info)                                                                       \
  F(ucp_worker_create) F(ucp_worker_destroy) F(ucp_worker_query) F(ucp_worker_get_address)        \
  F(ucp_worker_release_address) F(ucp_worker_progress) F(ucp_worker_get_efd) F(ucp_worker_arm)    \
  F(ucp_ep_create) F(ucp_ep_close_nbx) F(ucp_ep_flush_nbx) F(ucp_ep_print_info) F(ucp_mem_map)    \
  F(ucp_mem_unmap) F(ucp_rkey_pack) F(ucp_rkey_buffer_release) F(ucp_ep_rkey_unpack)              \
  F(ucp_rkey_destroy) F(ucp_put_nbx) F(ucp_get_nbx) F(ucp_am_send_nbx)                            \
  F(ucp_worker_set_am_recv_handler) F(ucp_request_check_status)                                   \
  F(ucp_request_free) F(ucs_status_string) F(ucs_log_push_handler)
// clang-format on

namespace viaduct::ucx {

// The functions that are used, by their own names.
struct UcxLibrary {
// NOLINTNEXTLINE(bugprone-macro-parentheses): a member's name
#define VIADUCT_UCX_MEMBER(name) decltype(&::name) name = nullptr;
  VIADUCT_UCX_FUNCTIONS(VIADUCT_UCX_MEMBER)
#undef VIADUCT_UCX_MEMBER
  unsigned major = 0, minor = 0;
  std::string version = {};  // "1.13.1"
};

// The one of this process. kUnsupported: not installed, or older than what this was built with.
Result<const UcxLibrary*> library();
// "UCX 1.13.1", or why it is not loaded.
std::string libraryVersion();

// The error of a call of UCX's that gave this status, with what UCX itself said meanwhile.
Error ucxError(Code code, std::string operation, ucs_status_t status);

// While one lives, what UCX would print from this thread is kept for ucxError() instead. Standard
// output belongs to the program.
class LogCapture {
 public:
  LogCapture();
  ~LogCapture();
  LogCapture(const LogCapture&) = delete;
  LogCapture& operator=(const LogCapture&) = delete;
};

bool userHasSet(const char* variable);  // in the environment
// Of one of UCP's own, by the environment or one of UCX's files; empty: it has no such thing.
std::string settingInForce(const UcxLibrary& ucx, const std::string& variable);

// What such a function prints: it has no other way to tell.
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
