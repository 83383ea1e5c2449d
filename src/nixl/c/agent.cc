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

nixl_capi_status_t openInto(const char* name, const AgentConfig& config, nixl_capi_agent_t* agent) {
  return call(
      {name, agent}, [&] { *agent = new nixl_capi_agent_s{OwnedAgent::open(name, config)}; },
      Failures::kBackend);
}

// Whether the options name the listener of another agent.
bool hasAddress(nixl_capi_opt_args_t options) {
  return options != nullptr && !options->host.empty();
}

// Without an address, agents find each other at the meeting place.
void needMeetingPlace(const char* operation) {
  if (!valueOf(settingsFromEnvironment()).meet.empty()) return;
  fail(Outcome::kNotSupported,
       fmt::format("{}: there is no meeting place; set VIADUCT_MEET or NIXL_ETCD_ENDPOINTS, or "
                   "name the address of a listener in the options",
                   operation));
}

// In the C interface partial metadata always has the agent's addresses, because no option asks for
// them.
std::string partialMetadata(nixl_capi_agent_t agent, nixl_capi_reg_dlist_t descs) {
  if (descs->list.rows->count() != 0) usable(descs);
  return agent->owned->with([&](NixlAgent& one) { return one.partialMetadata(descs->list, true); });
}

void giveBytes(const std::string& bytes, void** data, size_t* length) {
  *data = copied(bytes);
  *length = bytes.size();
}

nixl_capi_status_t describe(nixl_capi_agent_t agent, const Plugin& plugin,
                            nixl_capi_mem_list_t* mems, nixl_capi_params_t* params) {
  auto memories = agent->owned->with([&](NixlAgent& one) { return one.memoriesOf(plugin); });
  auto list = std::make_unique<nixl_capi_mem_list_s>(nixl_capi_mem_list_s{std::move(memories)});
  *params = new nixl_capi_params_s{plugin.defaults()};
  *mems = list.release();
  return NIXL_CAPI_SUCCESS;
}

// Fails if no backend of the agent, or none of those in the options, serves the kind of memory.
void needBackend(NixlAgent& agent, Memory memory, nixl_capi_opt_args_t options) {
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
nixl_capi_status_t nixl_capi_create_agent(const char* name, nixl_capi_agent_t* agent) {
  warnOfLackingFunctions(__builtin_return_address(0));
  return openInto(name, {}, agent);
}

nixl_capi_status_t nixl_capi_create_configured_agent(const char* name,
                                                     const nixl_capi_agent_config_t* config,
                                                     nixl_capi_agent_t* agent) {
  warnOfLackingFunctions(__builtin_return_address(0));
  if (config == nullptr) return NIXL_CAPI_ERROR_INVALID_PARAM;
  return openInto(name,
                  {.use_progress_thread = config->enable_prog_thread,
                   .use_listen_thread = config->enable_listen_thread,
                   .listen_port = config->listen_port,
                   .capture_telemetry = config->capture_telemetry},
                  agent);
}

nixl_capi_status_t nixl_capi_destroy_agent(nixl_capi_agent_t agent) { return destroy(agent); }

nixl_capi_status_t nixl_capi_get_local_md(nixl_capi_agent_t agent, void** data, size_t* length) {
  return call({agent, data, length}, [&] {
    giveBytes(*agent->owned->with([](NixlAgent& one) { return one.metadata(); }), data, length);
  });
}

nixl_capi_status_t nixl_capi_get_local_partial_md(nixl_capi_agent_t agent,
                                                  nixl_capi_reg_dlist_t descs, void** data,
                                                  size_t* length,
                                                  nixl_capi_opt_args_t /*options*/) {
  return call({agent, descs, data, length},
              [&] { giveBytes(partialMetadata(agent, descs), data, length); });
}

nixl_capi_status_t nixl_capi_load_remote_md(nixl_capi_agent_t agent, const void* data,
                                            size_t length, char** agent_name) {
  return call({agent, data, agent_name}, [&] {
    std::string name = agent->owned->with(
        [&](NixlAgent& one) { return std::string(one.addRemote(bytesAt(data, length))); });
    *agent_name = static_cast<char*>(copied({name.c_str(), name.size() + 1}));
  });
}

nixl_capi_status_t nixl_capi_invalidate_remote_md(nixl_capi_agent_t agent, const char* remote) {
  return call({agent, remote}, [&] {
    agent->owned->with([&](NixlAgent& one) {
      if (one.name() == remote)
        fail(Outcome::kInvalid, "invalidate_remote_md: an agent cannot forget itself; destroy it");
      one.removeRemote(remote);
    });
  });
}

nixl_capi_status_t nixl_capi_check_remote_md(nixl_capi_agent_t agent, const char* remote,
                                             nixl_capi_xfer_dlist_t descs) {
  return call({agent, remote}, [&] {
    static const TransferList kNone;
    const bool asked = descs != nullptr && descs->list.rows->count() != 0;
    const TransferList& list = asked ? usable(descs) : kNone;
    return agent->owned->with([&](NixlAgent& one) { return one.knowsRemote(remote, list); })
               ? NIXL_CAPI_SUCCESS
               : NIXL_CAPI_ERROR_NOT_FOUND;
  });
}

nixl_capi_status_t nixl_capi_send_local_md(nixl_capi_agent_t agent, nixl_capi_opt_args_t options) {
  return call({agent}, [&] {
    // An agent is published at the meeting place as long as it is open.
    if (!hasAddress(options)) return needMeetingPlace("send_local_md");
    agent->owned->exchange().send(
        options->host, options->port,
        *agent->owned->with([](NixlAgent& one) { return one.metadata(); }));
  });
}

nixl_capi_status_t nixl_capi_send_local_partial_md(nixl_capi_agent_t agent,
                                                   nixl_capi_reg_dlist_t descs,
                                                   nixl_capi_opt_args_t options) {
  return call({agent, descs}, [&] {
    if (!hasAddress(options))
      fail(Outcome::kInvalid,
           "send_local_partial_md: the options name no address of a listener; set one");
    agent->owned->exchange().send(options->host, options->port, partialMetadata(agent, descs));
  });
}

nixl_capi_status_t nixl_capi_fetch_remote_md(nixl_capi_agent_t agent, const char* remote,
                                             nixl_capi_opt_args_t options) {
  return call({agent, remote}, [&] {
    Exchange& exchange = agent->owned->exchange();
    if (hasAddress(options)) return exchange.fetch(options->host, options->port);
    needMeetingPlace("fetch_remote_md");
    exchange.find(remote, {});
  });
}

nixl_capi_status_t nixl_capi_invalidate_local_md(nixl_capi_agent_t agent,
                                                 nixl_capi_opt_args_t options) {
  return call({agent}, [&] {
    if (!hasAddress(options)) return needMeetingPlace("invalidate_local_md");
    agent->owned->exchange().invalidate(
        options->host, options->port,
        agent->owned->with([](NixlAgent& one) { return one.name(); }));
  });
}

nixl_capi_status_t nixl_capi_agent_make_connection(nixl_capi_agent_t agent, const char* remote,
                                                   nixl_capi_opt_args_t /*options*/) {
  return call({agent, remote}, [&] {
    const Peer peer = agent->owned->with([&](NixlAgent& one) { return one.connection(remote); });
    check(peer.ready(kReachWithin));
  });
}

nixl_capi_status_t nixl_capi_get_available_plugins(nixl_capi_agent_t agent,
                                                   nixl_capi_string_list_t* list) {
  return call(
      {agent, list},
      [&] {
        *list = new nixl_capi_string_list_s{
            base::mapped(plugins(), [](const Plugin& one) { return std::string(one.name); })};
      },
      Failures::kBackend);
}

nixl_capi_status_t nixl_capi_get_plugin_params(nixl_capi_agent_t agent, const char* plugin,
                                               nixl_capi_mem_list_t* mems,
                                               nixl_capi_params_t* params) {
  return call(
      {agent, plugin, mems, params},
      [&] { return describe(agent, pluginOf(plugin), mems, params); }, Failures::kBackend);
}

nixl_capi_status_t nixl_capi_create_backend(nixl_capi_agent_t agent, const char* plugin,
                                            nixl_capi_params_t params,
                                            nixl_capi_backend_t* backend) {
  return call(
      {agent, plugin, params, backend},
      [&] {
        const Plugin& wanted = agent->owned->with([&](NixlAgent& one) -> const Plugin& {
          return one.backend(one.createBackend(plugin, params->entries));
        });
        *backend = new nixl_capi_backend_s{&wanted};
        const Parameters known = wanted.defaults();
        for (const auto& [name, value] : params->entries)
          if (base::firstWith(known, &Parameters::value_type::first, name) == nullptr)
            base::log(base::LogLevel::kWarning,
                      "backend {}: parameter {} is unknown and is ignored", plugin, name);
      },
      Failures::kBackend);
}

nixl_capi_status_t nixl_capi_get_backend_params(nixl_capi_agent_t agent,
                                                nixl_capi_backend_t backend,
                                                nixl_capi_mem_list_t* mems,
                                                nixl_capi_params_t* params) {
  return call(
      {agent, backend, mems, params},
      [&] { return describe(agent, *backend->plugin, mems, params); }, Failures::kBackend);
}

nixl_capi_status_t nixl_capi_destroy_backend(nixl_capi_backend_t backend) {
  return destroy(backend);
}

nixl_capi_status_t nixl_capi_register_mem(nixl_capi_agent_t agent, nixl_capi_reg_dlist_t descs,
                                          nixl_capi_opt_args_t options) {
  return call({agent, descs}, [&] {
    const RegistrationList& list = usable(descs);
    agent->owned->with([&](NixlAgent& one) {
      needBackend(one, list.memory, options);
      one.registerMemory(list);
    });
  });
}

nixl_capi_status_t nixl_capi_deregister_mem(nixl_capi_agent_t agent, nixl_capi_reg_dlist_t descs,
                                            nixl_capi_opt_args_t /*options*/) {
  return call({agent, descs}, [&] {
    const RegistrationList& list = usable(descs);
    agent->owned->with([&](NixlAgent& one) { one.deregisterMemory(list); });
  });
}

nixl_capi_status_t nixl_capi_query_mem(nixl_capi_agent_t agent, nixl_capi_reg_dlist_t descs,
                                       nixl_capi_query_resp_list_t responses,
                                       nixl_capi_opt_args_t options) {
  return call({agent, descs, responses, options}, [&] {
    if (options->backends.size() != 1)
      fail(Outcome::kInvalid, "query_mem: the options name no backend, or several; name one");
    const RegistrationList& list = usable(descs);
    responses->answers = agent->owned->with(
        [&](NixlAgent& one) { return one.query(list, *options->backends.front()); });
  });
}

nixl_capi_status_t nixl_capi_create_query_resp_list(nixl_capi_query_resp_list_t* responses) {
  return call({responses}, [&] { *responses = new nixl_capi_query_resp_list_s(); });
}
nixl_capi_status_t nixl_capi_destroy_query_resp_list(nixl_capi_query_resp_list_t responses) {
  return destroy(responses);
}
nixl_capi_status_t nixl_capi_query_resp_list_size(nixl_capi_query_resp_list_t responses,
                                                  size_t* size) {
  return call({responses, size}, [&] { *size = responses->answers.size(); });
}
nixl_capi_status_t nixl_capi_query_resp_list_has_value(nixl_capi_query_resp_list_t responses,
                                                       size_t index, bool* has_value) {
  return call({responses, has_value},
              [&] { *has_value = itemAt(responses->answers, index).has_value(); });
}
nixl_capi_status_t nixl_capi_query_resp_list_get_params(nixl_capi_query_resp_list_t responses,
                                                        size_t index, nixl_capi_params_t* params) {
  return call({responses, params}, [&] {
    const auto& answer = itemAt(responses->answers, index);
    if (!answer) fail(Outcome::kInvalid, "query_resp_list_get_params: the answer has no value");
    *params = new nixl_capi_params_s{*answer};
  });
}
// NOLINTEND(readability-identifier-naming)
