#include "backends/ucx/conduit.h"

#include <viaduct/deadline.h>

#include <chrono>

#include "core/fabric/message.h"

namespace viaduct::ucx {
namespace {

// Hardware gives back what it had in hand within microseconds. Behind a driver that does not, the
// worker is destroyed all the same.
constexpr auto kClosing = std::chrono::milliseconds(100);

}  // namespace

Result<std::unique_ptr<Conduit>> Conduit::open(const Context& context) {
  const Hush hush;
  const Library& ucx = context.ucx();
  std::unique_ptr<Conduit> out(new Conduit(context));
  ucp_worker_params_t params{};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE | UCP_WORKER_PARAM_FIELD_FLAGS;
  params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  params.flags = UCP_WORKER_FLAG_IGNORE_REQUEST_LEAK;
  if (const auto status = ucx.ucp_worker_create(context.handle(), &params, &out->worker_);
      status != UCS_OK) {
    out->worker_ = nullptr;
    return ucxError(Code::kDevice, "ucp_worker_create", status);
  }
  if (const auto status = ucx.ucp_worker_get_efd(out->worker_, &out->fd_); status != UCS_OK)
    return ucxError(Code::kUnsupported, "ucp_worker_get_efd", status);
  ucp_address_t* address = nullptr;
  std::size_t bytes = 0;
  if (const auto status = ucx.ucp_worker_get_address(out->worker_, &address, &bytes);
      status != UCS_OK)
    return ucxError(Code::kDevice, "ucp_worker_get_address", status);
  const auto* const first = reinterpret_cast<const std::byte*>(address);
  out->address_.assign(first, first + bytes);
  ucx.ucp_worker_release_address(out->worker_, address);
  if (out->address_.size() > core::fabric::kMaxAddress)
    return Error{.code = Code::kUnsupported,
                 .operation = "ucp_worker_get_address",
                 .detail = std::to_string(bytes) + " bytes"};
  out->params_.op_attr_mask = UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  out->params_.memory_type = UCS_MEMORY_TYPE_HOST;
  return out;
}

Status Conduit::join(const Bytes& peer) {
  const Hush hush;
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(peer.data());
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler.cb = &Conduit::failed;
  params.err_handler.arg = this;
  if (const auto status = ucx_.ucp_ep_create(worker_, &params, &endpoint_); status != UCS_OK) {
    endpoint_ = nullptr;
    return ucxError(Code::kPeerLost, "ucp_ep_create", status);
  }
  return readLanes();
}

Status Conduit::readLanes() {
  const auto lanes =
      lanesIn(printed([&](std::FILE* file) { ucx_.ucp_ep_print_info(endpoint_, file); }));
  lanes_ = listText(lanes);
  way_ = wayText(lanes);
  if (way_.empty()) way_ = context_.rdmaOnly() ? "rdma" : "tcp";  // a UCX that prints otherwise
  if (!context_.rdmaOnly() || !anyOf(lanes, Realm::kTcp)) return Ok{};
  return Error{.code = Code::kUnsupported,
               .operation = "ucp_ep_create",
               .detail = "UCX chose " + lanes_ + " for this peer, which is not RDMA",
               .device = "ucx"};
}

void Conduit::failed(void* self, ucp_ep_h, ucs_status_t status) {
  static_cast<Conduit*>(self)->breakWith(status);
}

void Conduit::breakWith(ucs_status_t status) {
  if (broken_) return;
  broken_ = ucxError(Code::kPeerLost, "ucp endpoint", status);
  broken_->cause = "the peer has closed the connection, or the path to it is down";
}

bool Conduit::refused(ucs_status_t status) {
  if (status != UCS_ERR_NO_RESOURCE && status != UCS_ERR_NO_MEMORY) breakWith(status);
  return false;
}

RemoteKey Conduit::keyOf(std::uint32_t generation, const Bytes& packed) {
  const Hush hush;
  if (const auto known = keys_.find(generation); known != keys_.end()) return known->second;
  ucp_rkey_h key = nullptr;
  if (ucx_.ucp_ep_rkey_unpack(endpoint_, packed.data(), &key) != UCS_OK) return nullptr;
  keys_.emplace(generation, key);
  return key;
}

void Conduit::retire(std::uint32_t generation) {
  const auto known = keys_.find(generation);
  if (known == keys_.end()) return;
  retired_.push_back(known->second);
  keys_.erase(known);
}

void Conduit::sweep() {
  for (ucp_rkey* const key : retired_) ucx_.ucp_rkey_destroy(key);
  retired_.clear();
}

Posted Conduit::post(OpKind kind, std::span<const Piece> pieces, RemoteKey key) {
  const Hush hush;
  // UCX takes it as it gave it: with no promise not to change it.
  auto* const theirs = static_cast<ucp_rkey_h>(const_cast<void*>(key));
  Posted out;
  for (const Piece& one : pieces) {
    const bool went =
        kind == OpKind::kWrite
            ? posted(ucx_.ucp_put_nbx(endpoint_, one.here, one.bytes, one.there, theirs, &params_))
            : posted(ucx_.ucp_get_nbx(endpoint_, one.here, one.bytes, one.there, theirs, &params_));
    if (!went) break;
    ++out.pieces;
  }
  return out;
}

bool Conduit::progress() {
  const Hush hush;
  return ucx_.ucp_worker_progress(worker_) != 0;
}

bool Conduit::arm() {
  const Hush hush;
  return ucx_.ucp_worker_arm(worker_) == UCS_OK;
}

Flush Conduit::flush() {
  const Hush hush;
  void* const request = ucx_.ucp_ep_flush_nbx(endpoint_, &params_);
  if (!UCS_PTR_IS_ERR(request)) return {request};
  breakWith(UCS_PTR_STATUS(request));
  return {};
}

bool Conduit::ended(Flush& flush) {
  if (broken_ || flush.request == nullptr) return !broken_;
  const ucs_status_t status = ucx_.ucp_request_check_status(flush.request);
  if (status == UCS_INPROGRESS) return false;
  letGo(flush);
  if (status != UCS_OK) breakWith(status);
  return status == UCS_OK;
}

void Conduit::letGo(Flush& flush) {
  if (flush.request != nullptr) ucx_.ucp_request_free(flush.request);
  flush.request = nullptr;
}

void Conduit::closeEndpoint() {
  ucp_request_param_t params{};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  params.flags = UCP_EP_CLOSE_FLAG_FORCE;
  void* const request = ucx_.ucp_ep_close_nbx(endpoint_, &params);
  if (request == nullptr || UCS_PTR_IS_ERR(request)) return;
  const auto until = Clock::now() + kClosing;
  while (ucx_.ucp_request_check_status(request) == UCS_INPROGRESS && Clock::now() < until)
    ucx_.ucp_worker_progress(worker_);
  ucx_.ucp_request_free(request);
}

Conduit::~Conduit() {
  if (worker_ == nullptr) return;
  const Hush hush;
  if (endpoint_ != nullptr) closeEndpoint();
  for (const auto& [generation, key] : keys_) retired_.push_back(key);
  sweep();  // UCX wants them gone before the worker
  ucx_.ucp_worker_destroy(worker_);
}

}  // namespace viaduct::ucx
