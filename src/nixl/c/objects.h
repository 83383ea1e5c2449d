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

// Short names for the types of nixl_capi.h.
using Status = nixl_capi_status_t;
using Agent = nixl_capi_agent_t;
using AgentConfig = nixl_capi_agent_config_t;
using StringList = nixl_capi_string_list_t;
using Params = nixl_capi_params_t;
using ParamIter = nixl_capi_param_iter_t;
using MemType = nixl_capi_mem_type_t;
using MemList = nixl_capi_mem_list_t;
using Backend = nixl_capi_backend_t;
using OptArgs = nixl_capi_opt_args_t;
using XferDlist = nixl_capi_xfer_dlist_t;
using RegDlist = nixl_capi_reg_dlist_t;
using RemoteDlist = nixl_capi_remote_dlist_t;
using DlistHandle = nixl_capi_xfer_dlist_handle_t;
using XferReq = nixl_capi_xfer_req_t;
using XferOp = nixl_capi_xfer_op_t;
using MemView = nixl_capi_mem_view_t;
using NotifMap = nixl_capi_notif_map_t;
using QueryRespList = nixl_capi_query_resp_list_t;

// An agent with the mutex that guards it.
class OwnedAgent {
 public:
  static std::shared_ptr<OwnedAgent> open(const std::string& name, const AgentConfig& config);

  // The agent, whose lock is held as long as the object lives.
  class Locked {
   public:
    explicit Locked(OwnedAgent& owned) : held_(owned.lock_.mutex), agent_(*owned.agent_) {}
    NixlAgent* operator->() const { return &agent_; }
    NixlAgent& operator*() const { return agent_; }

   private:
    const std::lock_guard<std::mutex> held_;
    NixlAgent& agent_;
  };
  Locked locked() { return Locked(*this); }
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
  std::unique_ptr<Exchange> exchange_;  // destroyed first
};

}  // namespace viaduct::nixl::c

// NOLINTBEGIN(readability-identifier-naming): the names of C
struct nixl_capi_agent_s {
  std::shared_ptr<viaduct::nixl::c::OwnedAgent> owned;
  auto locked() const { return owned->locked(); }
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
// The two handles below may outlive their agent, so they only have weak pointers to it.
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
