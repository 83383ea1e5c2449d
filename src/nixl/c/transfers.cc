// NIXL's C interface: prepared lists, transfers, memory views.
#include <atomic>
#include <span>

#include "base/log.h"
#include "nixl/c/call.h"

namespace {

using namespace viaduct;
using namespace viaduct::nixl;
using namespace viaduct::nixl::c;

Direction directionOf(c::XferOp operation) {
  if (operation != NIXL_CAPI_XFER_OP_READ && operation != NIXL_CAPI_XFER_OP_WRITE)
    fail(Outcome::kInvalid, "the operation is neither READ nor WRITE");
  return operation == NIXL_CAPI_XFER_OP_READ ? Direction::kRead : Direction::kWrite;
}

// The flag decides whether the message is sent, whichever of the two was set first.
std::string noteOf(c::OptArgs options) {
  return options != nullptr && options->has_note ? options->note : std::string();
}

Indices indicesOf(const int* first, size_t count) {
  if (first == nullptr && count != 0)
    fail(Outcome::kInvalid, "the indices are NULL and their number is not 0");
  return Indices(std::span(first, count));
}

c::Status statusOfState(bool done) { return done ? NIXL_CAPI_SUCCESS : NIXL_CAPI_IN_PROG; }

// The number of a transfer. Fails if the transfer was released.
std::uint64_t numberOf(c::XferReq request) {
  if (request->number == 0) fail(Outcome::kInvalid, "the transfer was released");
  return request->number;
}

// Refuses a memory view, which is for transfers that a GPU starts by itself.
c::Status refuseView() {
  static std::atomic_flag said;
  base::logOnce(said, base::LogLevel::kWarning,
                "nixl: memory views are refused: they need transfers that a GPU starts by itself");
  return NIXL_CAPI_ERROR_BACKEND;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the names of C
c::Status nixl_capi_prep_xfer_dlist(c::Agent agent, const char* remote, c::XferDlist descs,
                                    c::DlistHandle* handle, c::OptArgs /*options*/) {
  return call({agent, remote, descs, handle}, [&] {
    const std::uint64_t number = agent->locked()->prepare(remote, usable(descs));
    *handle = new nixl_capi_xfer_dlist_handle_s{agent->owned, number};
  });
}

// The agent's own pointer may be dangling here, so only the handle's is used.
c::Status nixl_capi_release_xfer_dlist_handle(c::Agent /*agent*/, c::DlistHandle handle) {
  return call({handle}, [&] {
    const std::unique_ptr<nixl_capi_xfer_dlist_handle_s> freed(handle);
    if (const auto owned = handle->agent.lock()) owned->locked()->releasePrepared(handle->number);
  });
}

c::Status nixl_capi_make_xfer_req(c::Agent agent, c::XferOp operation, c::DlistHandle local,
                                  const int* local_indices, size_t local_count,
                                  c::DlistHandle remote, const int* remote_indices,
                                  size_t remote_count, c::XferReq* request, c::OptArgs options) {
  return call({agent, local, remote, request}, [&] {
    Indices here = indicesOf(local_indices, local_count);
    Indices there = indicesOf(remote_indices, remote_count);
    const std::uint64_t number =
        agent->locked()->makeRequest(directionOf(operation), local->number, std::move(here),
                                     remote->number, std::move(there), {.note = noteOf(options)});
    *request = new nixl_capi_xfer_req_s{agent->owned, number};
  });
}

c::Status nixl_capi_create_xfer_req(c::Agent agent, c::XferOp operation, c::XferDlist local,
                                    c::XferDlist remote_descs, const char* remote,
                                    c::XferReq* request, c::OptArgs options) {
  return call<Failures::kBackend>({agent, local, remote_descs, remote, request}, [&] {
    const std::uint64_t number =
        agent->locked()->makeRequest(directionOf(operation), usable(local), usable(remote_descs),
                                     remote, {.note = noteOf(options)});
    *request = new nixl_capi_xfer_req_s{agent->owned, number};
  });
}

c::Status nixl_capi_post_xfer_req(c::Agent agent, c::XferReq request, c::OptArgs options) {
  return call({agent, request}, [&] {
    return statusOfState(agent->locked()->postRequest(numberOf(request), noteOf(options)));
  });
}

c::Status nixl_capi_get_xfer_status(c::Agent agent, c::XferReq request) {
  return call({agent, request},
              [&] { return statusOfState(agent->locked()->checkRequest(numberOf(request))); });
}

c::Status nixl_capi_query_xfer_backend(c::Agent agent, c::XferReq request, c::Backend* backend) {
  return call({agent, request, backend}, [&] {
    const auto one = agent->locked();
    *backend = new nixl_capi_backend_s{&one->backend(one->requestBackend(numberOf(request)))};
  });
}

c::Status nixl_capi_estimate_xfer_cost(c::Agent agent, c::XferReq request, c::OptArgs /*options*/,
                                       int64_t* duration_us, int64_t* err_margin_us,
                                       nixl_capi_cost_t* method) {
  return call({agent, request, duration_us, err_margin_us, method}, [&] {
    static std::atomic_flag said;
    base::logOnce(said, base::LogLevel::kWarning,
                  "nixl: Viaduct does not estimate a transfer's cost; post it with telemetry");
    return NIXL_CAPI_ERROR_BACKEND;
  });
}

c::Status nixl_capi_get_xfer_telemetry(c::Agent agent, c::XferReq request,
                                       nixl_capi_xfer_telemetry_t* telemetry) {
  return call({agent, request, telemetry}, [&] {
    const std::uint64_t number = numberOf(request);
    const auto one = agent->locked();
    if (!one->capturesTelemetry()) return NIXL_CAPI_ERROR_NO_TELEMETRY;
    if (!one->checkRequest(number)) return NIXL_CAPI_IN_PROG;
    const Telemetry told = one->telemetry(number);
    *telemetry = {.start_time_us = told.steady_us,
                  .post_duration_us = told.post_us,
                  .xfer_duration_us = told.transfer_us,
                  .total_bytes = told.bytes,
                  .desc_count = told.descriptors};
    return NIXL_CAPI_SUCCESS;
  });
}

// The agent's own pointer may be dangling here, so only the request's is used.
c::Status nixl_capi_release_xfer_req(c::Agent /*agent*/, c::XferReq request) {
  return call({request}, [&] {
    const std::uint64_t number = std::exchange(request->number, 0);
    if (number == 0) return NIXL_CAPI_ERROR_INVALID_PARAM;
    if (const auto owned = request->agent.lock()) owned->locked()->releaseRequest(number);
    return NIXL_CAPI_SUCCESS;
  });
}

c::Status nixl_capi_destroy_xfer_req(c::XferReq request) {
  return call({request}, [&] {
    if (request->number != 0) return NIXL_CAPI_ERROR_INVALID_STATE;
    delete request;
    return NIXL_CAPI_SUCCESS;
  });
}

c::Status nixl_capi_prep_mem_view_local(c::Agent agent, c::XferDlist dlist, c::MemView* view,
                                        c::OptArgs /*options*/) {
  return call({agent, dlist, view}, refuseView);
}
c::Status nixl_capi_prep_mem_view_remote(c::Agent agent, c::RemoteDlist dlist, c::MemView* view,
                                         c::OptArgs /*options*/) {
  return call({agent, dlist, view}, refuseView);
}
c::Status nixl_capi_release_mem_view(c::Agent agent, c::MemView view) {
  return call({agent, view}, refuseView);
}
// NOLINTEND(readability-identifier-naming)
