#include "backends/ucx/ucx_endpoint.h"

#include <viaduct/deadline.h>

#include <chrono>
#include <utility>

#include "move/fabric_message.h"

namespace viaduct::ucx {
namespace {

// The longest wait for a closing endpoint. Hardware completes its requests within microseconds. If
// a driver does not complete them, the worker is destroyed anyway.
constexpr auto kClosing = std::chrono::milliseconds(100);

}  // namespace

Status UcxEndpoint::openWorker() {
  ucp_worker_params_t params{};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE | UCP_WORKER_PARAM_FIELD_FLAGS;
  params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  params.flags = UCP_WORKER_FLAG_IGNORE_REQUEST_LEAK;
  if (const auto status = ucx_.ucp_worker_create(context_.handle(), &params, &worker_);
      status != UCS_OK) {
    worker_ = nullptr;
    return ucxError(Code::kDevice, "ucp_worker_create", status);
  }
  if (const auto status = ucx_.ucp_worker_get_efd(worker_, &fd_); status != UCS_OK)
    return ucxError(Code::kUnsupported, "ucp_worker_get_efd", status);
  ucp_address_t* address = nullptr;
  std::size_t bytes = 0;
  if (const auto status = ucx_.ucp_worker_get_address(worker_, &address, &bytes); status != UCS_OK)
    return ucxError(Code::kDevice, "ucp_worker_get_address", status);
  const auto* const first = reinterpret_cast<const std::byte*>(address);
  address_.assign(first, first + bytes);
  ucx_.ucp_worker_release_address(worker_, address);
  if (address_.size() <= move::kMaxAddress) return Ok{};
  return Error{.code = Code::kUnsupported,
               .operation = "ucp_worker_get_address",
               .detail = std::to_string(bytes) + " bytes"};
}

Status UcxEndpoint::join(const Bytes& peer) {
  const LogCapture capture;
  // UCX gets no length, so an empty address would be read beyond its end.
  if (peer.empty())
    return Error{.code = Code::kProtocol,
                 .operation = "ucx link",
                 .detail = "the peer's address is too short"};
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(peer.data());
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler.cb = &UcxEndpoint::failed;
  params.err_handler.arg = this;
  if (const auto status = ucx_.ucp_ep_create(worker_, &params, &ep_); status != UCS_OK) {
    ep_ = nullptr;
    return ucxError(Code::kPeerLost, "ucp_ep_create", status);
  }
  joined_at_ = Clock::now();
  return readLanes();
}

Status UcxEndpoint::readLanes() {
  const auto lanes = lanesIn(printed([&](std::FILE* file) { ucx_.ucp_ep_print_info(ep_, file); }));
  transport_devices_ = listText(lanes);
  transport_ = transportText(lanes);
  if (transport_.empty())
    transport_ = context_.rdmaOnly() ? "rdma" : "tcp";  // if UCX's text has another form
  if (!context_.rdmaOnly() || !anyOf(lanes, TransportKind::kTcp)) return Ok{};
  return Error{.code = Code::kUnsupported,
               .operation = "ucp_ep_create",
               .detail = "UCX chose " + transport_devices_ + " for this peer, which is not RDMA",
               .device = "ucx"};
}

void UcxEndpoint::failed(void* self, ucp_ep_h, ucs_status_t status) {
  static_cast<UcxEndpoint*>(self)->breakWith(status);
}

void UcxEndpoint::breakWith(ucs_status_t status) {
  if (broken_) return;
  Error why = ucxError(Code::kPeerLost, "ucp endpoint", status);
  why.cause = "the peer has closed the connection, or the path to it is down";
  breakWith(std::move(why));
}

void UcxEndpoint::breakWith(Error why) {
  if (!broken_) broken_ = std::move(why);
}

bool UcxEndpoint::arm() {
  const LogCapture capture;
  return ucx_.ucp_worker_arm(worker_) == UCS_OK;
}

void UcxEndpoint::closeEndpoint() {
  const LogCapture capture;
  if (ep_ == nullptr) return;
  ucp_request_param_t params{};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  params.flags = UCP_EP_CLOSE_FLAG_FORCE;
  void* const request = ucx_.ucp_ep_close_nbx(std::exchange(ep_, nullptr), &params);
  if (request == nullptr || UCS_PTR_IS_ERR(request)) return;
  const auto until = Clock::now() + kClosing;
  while (ucx_.ucp_request_check_status(request) == UCS_INPROGRESS && Clock::now() < until)
    ucx_.ucp_worker_progress(worker_);
  ucx_.ucp_request_free(request);
}

void UcxEndpoint::closeWorker() {
  const LogCapture capture;
  if (worker_ != nullptr) ucx_.ucp_worker_destroy(std::exchange(worker_, nullptr));
}

}  // namespace viaduct::ucx
