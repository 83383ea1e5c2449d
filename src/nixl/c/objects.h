// The objects behind the handles of NIXL's C interface. Threads: as nixl_capi.h says.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nixl/agent.h"
#include "nixl/c/nixl_capi.h"
#include "nixl/exchange.h"

namespace viaduct::nixl::c {

// An agent with the mutex that guards it.
class OwnedAgent {
 public:
  static std::shared_ptr<OwnedAgent> open(const std::string& name, const AgentConfig& config);

  // Runs `call` with the agent, whose lock is held.
  template <class Call>
  decltype(auto) with(const Call& call) {
    const std::lock_guard held(lock_.mutex);
    return call(*agent_);
  }
  Exchange& exchange() { return *exchange_; }

 private:
  struct MutexLock : AgentLock {
    void* unlock() override {
      mutex.unlock();
      return nullptr;
    }
    void lock(void* /*unlocked*/) override { mutex.lock(); }
    std::mutex mutex;
  };

  MutexLock lock_;
  std::unique_ptr<NixlAgent> agent_;
  std::unique_ptr<Exchange> exchange_;  // ends first
};

}  // namespace viaduct::nixl::c

// NOLINTBEGIN(readability-identifier-naming): the names of C
struct nixl_capi_agent_s {
  std::shared_ptr<viaduct::nixl::c::OwnedAgent> owned;
};
struct nixl_capi_string_list_s {
  std::vector<std::string> texts;
};
struct nixl_capi_mem_list_s {
  std::vector<viaduct::nixl::Memory> memories;
};
struct nixl_capi_params_s {
  viaduct::nixl::Parameters entries;
};
struct nixl_capi_param_iter_s {
  const viaduct::nixl::Parameters entries;  // a copy, so that the strings live long enough
  std::size_t next = 0;
};
struct nixl_capi_backend_s {
  const viaduct::nixl::Plugin* plugin;
};
struct nixl_capi_opt_args_s {
  std::vector<const viaduct::nixl::Plugin*> backends = {};
  std::string note = {};
  bool has_note = false, skip_merge = false;
  std::string host = {};
  std::uint16_t port = 8888;
};
struct nixl_capi_xfer_dlist_s {
  nixl_capi_mem_type_t type;
  viaduct::nixl::TransferList list = {};
};
struct nixl_capi_reg_dlist_s {
  nixl_capi_mem_type_t type;
  viaduct::nixl::RegistrationList list = {};
};
struct nixl_capi_remote_dlist_s {
  nixl_capi_mem_type_t type;
  viaduct::nixl::RemoteList list = {};
};
// Both may outlive their agent, so they never point to it.
struct nixl_capi_xfer_dlist_handle_s {
  std::weak_ptr<viaduct::nixl::c::OwnedAgent> agent;
  std::uint64_t number;
};
struct nixl_capi_xfer_req_s {
  std::weak_ptr<viaduct::nixl::c::OwnedAgent> agent;
  std::uint64_t number;  // 0: released
};
struct nixl_capi_notif_map_s {
  std::map<std::string, std::vector<std::string>, std::less<>> notes;
};
struct nixl_capi_query_resp_list_s {
  std::vector<std::optional<viaduct::nixl::Parameters>> answers;
};
// NOLINTEND(readability-identifier-naming)
