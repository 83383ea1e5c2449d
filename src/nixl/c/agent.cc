// NIXL's C interface: agents, metadata, backends, memory.
#include <fmt/format.h>
#include <viaduct/settings.h>

#include <algorithm>

#include "base/lists.h"
#include "base/log.h"
#include "nixl/c/call.h"

namespace {

using namespace viaduct;
using namespace viaduct::nixl;
using namespace viaduct::nixl::c;

c::Status openInto(const char* name, const c::AgentConfig& config, c::Agent* agent) {
  return call<Failures::kBackend>(
      {name, agent}, [&] { *agent = new nixl_capi_agent_s{OwnedAgent::open(name, config)}; });
}

// Whether the options name the listener of another agent.
bool hasAddress(c::OptArgs options) { return options != nullptr && !options->host.empty(); }

// Fails if there is no meeting place, where agents without an address find each other.
void needMeetingPlace(const char* operation) {
  if (!valueOf(settingsFromEnvironment()).meet.empty()) return;
  fail(Outcome::kNotSupported,
       fmt::format("{}: there is no meeting place; set VIADUCT_MEET or NIXL_ETCD_ENDPOINTS, or "
                   "name the address of a listener in the options",
                   operation));
}

// In the C interface partial metadata always has the agent's addresses, because no option asks for
// them.
std::string partialMetadata(c::Agent agent, c::RegDlist descs) {
  if (descs->list.rows->count() != 0) usable(descs);
  return agent->locked()->partialMetadata(descs->list, true);
}

void describe(c::Agent agent, const Plugin& plugin, c::MemList* mems, c::Params* params) {
  auto memories = std::make_unique<nixl_capi_mem_list_s>(
      nixl_capi_mem_list_s{agent->locked()->memoriesOf(plugin)});
  *params = new nixl_capi_params_s{plugin.defaults()};
  *mems = memories.release();
}

// Fails if no backend of the agent, or none of those in the options, serves the kind of memory.
void needBackend(NixlAgent& agent, Memory memory, c::OptArgs options) {
  const auto serves = [&](const Plugin* one) {
    const bool asked =
        options == nullptr || options->backends.empty() || base::contains(options->backends, one);
    return asked && base::contains(agent.memoriesOf(*one), memory);
  };
  if (std::ranges::any_of(agent.backends(), serves)) return;
  fail(Outcome::kNotFound,
       fmt::format("register_mem: the agent has no backend for {}; create UCX for DRAM and VRAM, "
                   "POSIX for FILE, OBJ for OBJECT",
                   memoryName(memory)));
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the names of C
c::Status nixl_capi_create_agent(const char* name, c::Agent* agent) {
  warnOfLackingFunctions(__builtin_return_address(0));
  return openInto(name, {}, agent);
}
c::Status nixl_capi_create_configured_agent(const char* name, const c::AgentConfig* config,
                                            c::Agent* agent) {
  warnOfLackingFunctions(__builtin_return_address(0));
  if (config == nullptr) return NIXL_CAPI_ERROR_INVALID_PARAM;
  return openInto(name, *config, agent);
}
c::Status nixl_capi_destroy_agent(c::Agent agent) { return destroy(agent); }

c::Status nixl_capi_get_local_md(c::Agent agent, void** data, size_t* length) {
  return call({agent, data, length},
              [&] { giveBytes(*agent->locked()->metadata(), data, length); });
}
c::Status nixl_capi_get_local_partial_md(c::Agent agent, c::RegDlist descs, void** data,
                                         size_t* length, c::OptArgs /*options*/) {
  return call({agent, descs, data, length},
              [&] { giveBytes(partialMetadata(agent, descs), data, length); });
}
c::Status nixl_capi_load_remote_md(c::Agent agent, const void* data, size_t length,
                                   char** agent_name) {
  return call({agent, data, agent_name}, [&] {
    const std::string name = agent->locked()->addRemote(bytesAt(data, length));
    *agent_name = static_cast<char*>(copied({name.c_str(), name.size() + 1}));
  });
}
c::Status nixl_capi_invalidate_remote_md(c::Agent agent, const char* remote) {
  return call({agent, remote}, [&] {
    if (agent->locked()->name() == remote)
      fail(Outcome::kInvalid, "invalidate_remote_md: an agent cannot forget itself; destroy it");
    agent->locked()->removeRemote(remote);
  });
}
c::Status nixl_capi_check_remote_md(c::Agent agent, const char* remote, c::XferDlist descs) {
  return call({agent, remote}, [&] {
    const bool asked = descs != nullptr && descs->list.rows->count() != 0;
    const bool known = agent->locked()->knowsRemote(remote, asked ? usable(descs) : TransferList());
    return known ? NIXL_CAPI_SUCCESS : NIXL_CAPI_ERROR_NOT_FOUND;
  });
}

c::Status nixl_capi_send_local_md(c::Agent agent, c::OptArgs options) {
  return call({agent}, [&] {
    // An agent is published at the meeting place as long as it is open.
    if (!hasAddress(options)) return needMeetingPlace("send_local_md");
    agent->owned->exchange().send(options->host, options->port, *agent->locked()->metadata());
  });
}
c::Status nixl_capi_send_local_partial_md(c::Agent agent, c::RegDlist descs, c::OptArgs options) {
  return call({agent, descs}, [&] {
    if (!hasAddress(options))
      fail(Outcome::kInvalid,
           "send_local_partial_md: the options name no address of a listener; set one");
    agent->owned->exchange().send(options->host, options->port, partialMetadata(agent, descs));
  });
}
c::Status nixl_capi_fetch_remote_md(c::Agent agent, const char* remote, c::OptArgs options) {
  return call({agent, remote}, [&] {
    Exchange& exchange = agent->owned->exchange();
    if (hasAddress(options)) return exchange.fetch(options->host, options->port);
    needMeetingPlace("fetch_remote_md");
    exchange.find(remote, {});
  });
}
c::Status nixl_capi_invalidate_local_md(c::Agent agent, c::OptArgs options) {
  return call({agent}, [&] {
    if (!hasAddress(options)) return needMeetingPlace("invalidate_local_md");
    agent->owned->exchange().invalidate(options->host, options->port, agent->locked()->name());
  });
}
c::Status nixl_capi_agent_make_connection(c::Agent agent, const char* remote,
                                          c::OptArgs /*options*/) {
  return call({agent, remote}, [&] {
    const Peer peer = agent->locked()->connection(remote);
    check(peer.ready(kReachWithin));
  });
}

c::Status nixl_capi_get_available_plugins(c::Agent agent, c::StringList* list) {
  return call<Failures::kBackend>({agent, list}, [&] {
    *list = new nixl_capi_string_list_s{
        base::mapped(plugins(), [](const Plugin& one) { return std::string(one.name); })};
  });
}
c::Status nixl_capi_get_plugin_params(c::Agent agent, const char* plugin, c::MemList* mems,
                                      c::Params* params) {
  return call<Failures::kBackend>({agent, plugin, mems, params},
                                  [&] { describe(agent, pluginOf(plugin), mems, params); });
}
c::Status nixl_capi_create_backend(c::Agent agent, const char* plugin, c::Params params,
                                   c::Backend* backend) {
  return call<Failures::kBackend>({agent, plugin, params, backend}, [&] {
    const auto one = agent->locked();
    const Plugin& wanted = one->backend(one->createBackend(plugin, params->entries));
    *backend = new nixl_capi_backend_s{&wanted};
    const Parameters known = wanted.defaults();
    for (const auto& [name, value] : params->entries)
      if (base::firstWith(known, &Parameters::value_type::first, name) == nullptr)
        base::log(base::LogLevel::kWarning, "backend {}: parameter {} is unknown and is ignored",
                  plugin, name);
  });
}
c::Status nixl_capi_get_backend_params(c::Agent agent, c::Backend backend, c::MemList* mems,
                                       c::Params* params) {
  return call<Failures::kBackend>({agent, backend, mems, params},
                                  [&] { describe(agent, *backend->plugin, mems, params); });
}
c::Status nixl_capi_destroy_backend(c::Backend backend) { return destroy(backend); }

c::Status nixl_capi_register_mem(c::Agent agent, c::RegDlist descs, c::OptArgs options) {
  return call({agent, descs}, [&] {
    const RegistrationList& list = usable(descs);
    const auto one = agent->locked();
    needBackend(*one, list.memory, options);
    one->registerMemory(list);
  });
}
c::Status nixl_capi_deregister_mem(c::Agent agent, c::RegDlist descs, c::OptArgs /*options*/) {
  return call({agent, descs}, [&] { agent->locked()->deregisterMemory(usable(descs)); });
}
c::Status nixl_capi_query_mem(c::Agent agent, c::RegDlist descs, c::QueryRespList responses,
                              c::OptArgs options) {
  return call({agent, descs, responses, options}, [&] {
    if (options->backends.size() != 1)
      fail(Outcome::kInvalid, "query_mem: the options name no backend, or several; name one");
    responses->answers = agent->locked()->query(usable(descs), *options->backends.front());
  });
}

c::Status nixl_capi_create_query_resp_list(c::QueryRespList* responses) {
  return create(responses);
}
c::Status nixl_capi_destroy_query_resp_list(c::QueryRespList responses) {
  return destroy(responses);
}
c::Status nixl_capi_query_resp_list_size(c::QueryRespList responses, size_t* size) {
  return call({responses, size}, [&] { *size = responses->answers.size(); });
}
c::Status nixl_capi_query_resp_list_has_value(c::QueryRespList responses, size_t index,
                                              bool* has_value) {
  return call({responses, has_value},
              [&] { *has_value = itemAt(responses->answers, index).has_value(); });
}
c::Status nixl_capi_query_resp_list_get_params(c::QueryRespList responses, size_t index,
                                               c::Params* params) {
  return call({responses, params}, [&] {
    const auto& answer = itemAt(responses->answers, index);
    if (!answer) fail(Outcome::kInvalid, "query_resp_list_get_params: the answer has no value");
    *params = new nixl_capi_params_s{*answer};
  });
}
// NOLINTEND(readability-identifier-naming)
