// NIXL's C interface: prepared lists, transfers, memory views.
#include <atomic>
#include <span>

#include "base/log.h"
#include "nixl/c/call.h"

namespace {

using namespace viaduct;
using namespace viaduct::nixl;
using namespace viaduct::nixl::c;

Direction directionOf(nixl_capi_xfer_op_t operation) {
  if (operation != NIXL_CAPI_XFER_OP_READ && operation != NIXL_CAPI_XFER_OP_WRITE)
    fail(Outcome::kInvalid, "the operation is neither READ nor WRITE");
  return operation == NIXL_CAPI_XFER_OP_READ ? Direction::kRead : Direction::kWrite;
}

// The flag decides whether the message is sent, whichever of the two was set first.
std::string noteOf(nixl_capi_opt_args_t options) {
  return options != nullptr && options->has_note ? options->note : std::string();
}

Indices indicesOf(const int* first, size_t count) {
  if (first == nullptr && count != 0)
    fail(Outcome::kInvalid, "the indices are NULL and their number is not 0");
  return Indices(std::span(first, count));
}

template <class H>
H* handleFor(nixl_capi_agent_t agent, std::uint64_t number) {
  return new H{.agent = agent->owned, .number = number};
}

nixl_capi_status_t statusOfState(bool done) { return done ? NIXL_CAPI_SUCCESS : NIXL_CAPI_IN_PROG; }

void needRequest(nixl_capi_xfer_req_t request) {
  if (request->number == 0) fail(Outcome::kInvalid, "the transfer was released");
}

// A transfer that a GPU starts by itself.
nixl_capi_status_t refuseView() {
  static std::atomic_flag said;
  base::logOnce(said, base::LogLevel::kWarning,
                "nixl: memory views are refused: they need transfers that a GPU starts by itself");
  return NIXL_CAPI_ERROR_BACKEND;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the names of C
nixl_capi_status_t nixl_capi_prep_xfer_dlist(nixl_capi_agent_t agent, const char* remote,
                                             nixl_capi_xfer_dlist_t descs,
                                             nixl_capi_xfer_dlist_handle_t* handle,
                                             nixl_capi_opt_args_t /*options*/) {
  return call({agent, remote, descs, handle}, [&] {
    const TransferList list = usable(descs);
    *handle = handleFor<nixl_capi_xfer_dlist_handle_s>(
        agent, agent->owned->with([&](NixlAgent& one) { return one.prepare(remote, list); }));
  });
}

// The agent's own pointer may be dangling here, so only the handle's is used.
nixl_capi_status_t nixl_capi_release_xfer_dlist_handle(nixl_capi_agent_t /*agent*/,
                                                       nixl_capi_xfer_dlist_handle_t handle) {
  return call({handle}, [&] {
    const std::unique_ptr<nixl_capi_xfer_dlist_handle_s> freed(handle);
    if (const auto owned = handle->agent.lock())
      owned->with([&](NixlAgent& one) { one.releasePrepared(handle->number); });
  });
}

nixl_capi_status_t nixl_capi_make_xfer_req(nixl_capi_agent_t agent, nixl_capi_xfer_op_t operation,
                                           nixl_capi_xfer_dlist_handle_t local,
                                           const int* local_indices, size_t local_count,
                                           nixl_capi_xfer_dlist_handle_t remote,
                                           const int* remote_indices, size_t remote_count,
                                           nixl_capi_xfer_req_t* request,
                                           nixl_capi_opt_args_t options) {
  return call({agent, local, remote, request}, [&] {
    Indices here = indicesOf(local_indices, local_count);
    Indices there = indicesOf(remote_indices, remote_count);
    *request = handleFor<nixl_capi_xfer_req_s>(agent, agent->owned->with([&](NixlAgent& one) {
      return one.makeRequest(directionOf(operation), local->number, std::move(here), remote->number,
                             std::move(there), {.note = noteOf(options)});
    }));
  });
}

nixl_capi_status_t nixl_capi_create_xfer_req(nixl_capi_agent_t agent, nixl_capi_xfer_op_t operation,
                                             nixl_capi_xfer_dlist_t local,
                                             nixl_capi_xfer_dlist_t remote_descs,
                                             const char* remote, nixl_capi_xfer_req_t* request,
                                             nixl_capi_opt_args_t options) {
  return call(
      {agent, local, remote_descs, remote, request},
      [&] {
        const TransferList here = usable(local), there = usable(remote_descs);
        *request = handleFor<nixl_capi_xfer_req_s>(agent, agent->owned->with([&](NixlAgent& one) {
          return one.makeRequest(directionOf(operation), here, there, remote,
                                 {.note = noteOf(options)});
        }));
      },
      Failures::kBackend);
}

nixl_capi_status_t nixl_capi_post_xfer_req(nixl_capi_agent_t agent, nixl_capi_xfer_req_t request,
                                           nixl_capi_opt_args_t options) {
  return call({agent, request}, [&] {
    needRequest(request);
    return statusOfState(agent->owned->with(
        [&](NixlAgent& one) { return one.postRequest(request->number, noteOf(options)); }));
  });
}

nixl_capi_status_t nixl_capi_get_xfer_status(nixl_capi_agent_t agent,
                                             nixl_capi_xfer_req_t request) {
  return call({agent, request}, [&] {
    needRequest(request);
    return statusOfState(
        agent->owned->with([&](NixlAgent& one) { return one.checkRequest(request->number); }));
  });
}

nixl_capi_status_t nixl_capi_query_xfer_backend(nixl_capi_agent_t agent,
                                                nixl_capi_xfer_req_t request,
                                                nixl_capi_backend_t* backend) {
  return call({agent, request, backend}, [&] {
    needRequest(request);
    *backend = agent->owned->with([&](NixlAgent& one) {
      return new nixl_capi_backend_s{&one.backend(one.requestBackend(request->number))};
    });
  });
}

nixl_capi_status_t nixl_capi_estimate_xfer_cost(nixl_capi_agent_t agent,
                                                nixl_capi_xfer_req_t request,
                                                nixl_capi_opt_args_t /*options*/,
                                                int64_t* duration_us, int64_t* err_margin_us,
                                                nixl_capi_cost_t* method) {
  return call({agent, request, duration_us, err_margin_us, method}, [&] {
    static std::atomic_flag said;
    base::logOnce(said, base::LogLevel::kWarning,
                  "nixl: Viaduct does not estimate a transfer's cost; post it with telemetry");
    return NIXL_CAPI_ERROR_BACKEND;
  });
}

nixl_capi_status_t nixl_capi_get_xfer_telemetry(nixl_capi_agent_t agent,
                                                nixl_capi_xfer_req_t request,
                                                nixl_capi_xfer_telemetry_t* telemetry) {
  return call({agent, request, telemetry}, [&] {
    needRequest(request);
    return agent->owned->with([&](NixlAgent& one) {
      if (!one.capturesTelemetry()) return NIXL_CAPI_ERROR_NO_TELEMETRY;
      if (!one.checkRequest(request->number)) return NIXL_CAPI_IN_PROG;
      const Telemetry told = one.telemetry(request->number);
      *telemetry = {.start_time_us = told.steady_us,
                    .post_duration_us = told.post_us,
                    .xfer_duration_us = told.transfer_us,
                    .total_bytes = told.bytes,
                    .desc_count = told.descriptors};
      return NIXL_CAPI_SUCCESS;
    });
  });
}

// As for prepared lists, the agent's own pointer may be dangling.
nixl_capi_status_t nixl_capi_release_xfer_req(nixl_capi_agent_t /*agent*/,
                                              nixl_capi_xfer_req_t request) {
  return call({request}, [&] {
    const std::uint64_t number = std::exchange(request->number, 0);
    if (number == 0) return NIXL_CAPI_ERROR_INVALID_PARAM;
    if (const auto owned = request->agent.lock())
      owned->with([&](NixlAgent& one) { one.releaseRequest(number); });
    return NIXL_CAPI_SUCCESS;
  });
}

nixl_capi_status_t nixl_capi_destroy_xfer_req(nixl_capi_xfer_req_t request) {
  return call({request}, [&] {
    if (request->number != 0) return NIXL_CAPI_ERROR_INVALID_STATE;
    delete request;
    return NIXL_CAPI_SUCCESS;
  });
}

nixl_capi_status_t nixl_capi_prep_mem_view_local(nixl_capi_agent_t agent,
                                                 nixl_capi_xfer_dlist_t dlist,
                                                 nixl_capi_mem_view_t* view,
                                                 nixl_capi_opt_args_t /*options*/) {
  return call({agent, dlist, view}, refuseView);
}
nixl_capi_status_t nixl_capi_prep_mem_view_remote(nixl_capi_agent_t agent,
                                                  nixl_capi_remote_dlist_t dlist,
                                                  nixl_capi_mem_view_t* view,
                                                  nixl_capi_opt_args_t /*options*/) {
  return call({agent, dlist, view}, refuseView);
}
nixl_capi_status_t nixl_capi_release_mem_view(nixl_capi_agent_t agent, nixl_capi_mem_view_t view) {
  return call({agent, view}, refuseView);
}
// NOLINTEND(readability-identifier-naming)
