#include "backends/ucx/rma_endpoint.h"

#include <viaduct/deadline.h>

#include <algorithm>
#include <chrono>

namespace viaduct::ucx {
namespace {

// The longest wait for the peer's answer, counted from join(). Devices that reach each other answer
// within milliseconds. The agent's lock is held meanwhile.
constexpr auto kAnswer = std::chrono::milliseconds(500);
// At least so much of it follows the start of the close. The agent's thread may have waited for its
// other endpoints until then, and have made no progress on this one.
constexpr auto kLastProgress = std::chrono::milliseconds(100);

}  // namespace

Result<std::unique_ptr<RmaEndpoint>> RmaEndpoint::open(const Context& context) {
  const LogCapture capture;
  std::unique_ptr<RmaEndpoint> out(new RmaEndpoint(context));
  VIADUCT_CHECK(out->openWorker());
  out->params_.op_attr_mask = UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  out->params_.memory_type = UCS_MEMORY_TYPE_HOST;
  return out;
}

RmaEndpoint::~RmaEndpoint() {
  letFirstMessageLeave();
  closeEndpoint();
  for (const auto& [generation, key] : keys_) retired_.push_back(key);
  sweep();  // UCX requires that keys are destroyed before the worker
  closeWorker();
}

// Makes progress until the endpoint's first message has been sent, or for kAnswer after join() and
// kLastProgress from now. Over RDMA, UCX 1.13 ends the process if an endpoint is closed before
// that. The message needs the peer's answer over ud: docs/gotchas/ucx.md.
void RmaEndpoint::letFirstMessageLeave() {
  if (ep_ == nullptr || reached_ || broken_ || !context_.rdmaOnly()) return;
  Flush answer = flush();
  const auto until = std::max(joined_at_ + kAnswer, Clock::now() + kLastProgress);
  while (!ended(answer) && !broken_ && Clock::now() < until) progress();
  letGo(answer);
}

bool RmaEndpoint::refused(ucs_status_t status) {
  if (status != UCS_ERR_NO_RESOURCE && status != UCS_ERR_NO_MEMORY) breakWith(status);
  return false;
}

RemoteKey RmaEndpoint::keyOf(std::uint32_t generation, const Bytes& packed) {
  const LogCapture capture;
  if (const auto known = keys_.find(generation); known != keys_.end()) return known->second;
  ucp_rkey_h key = nullptr;
  if (packed.empty()) return nullptr;  // UCX gets no length, and would read beyond its end
  if (ucx_.ucp_ep_rkey_unpack(ep_, packed.data(), &key) != UCS_OK) return nullptr;
  keys_.emplace(generation, key);
  return key;
}

void RmaEndpoint::retire(std::uint32_t generation) {
  const auto known = keys_.find(generation);
  if (known == keys_.end()) return;
  retired_.push_back(known->second);
  keys_.erase(known);
}

void RmaEndpoint::sweep() {
  for (ucp_rkey* const key : retired_) ucx_.ucp_rkey_destroy(key);
  retired_.clear();
}

Posted RmaEndpoint::post(OpKind kind, std::span<const Piece> pieces, RemoteKey key) {
  const LogCapture capture;
  // UCX's functions take the key without const.
  auto* const theirs = static_cast<ucp_rkey_h>(const_cast<void*>(key));
  Posted out;
  for (const Piece& one : pieces) {
    const bool went =
        kind == OpKind::kWrite
            ? posted(ucx_.ucp_put_nbx(ep_, one.here, one.bytes, one.there, theirs, &params_))
            : posted(ucx_.ucp_get_nbx(ep_, one.here, one.bytes, one.there, theirs, &params_));
    if (!went) break;
    ++out.pieces;
  }
  return out;
}

bool RmaEndpoint::progress() {
  const LogCapture capture;
  return ucx_.ucp_worker_progress(worker_) != 0;
}

Flush RmaEndpoint::flush() {
  const LogCapture capture;
  void* const request = ucx_.ucp_ep_flush_nbx(ep_, &params_);
  if (!UCS_PTR_IS_ERR(request)) return {request};
  breakWith(UCS_PTR_STATUS(request));
  return {};
}

bool RmaEndpoint::ended(Flush& flush) {
  if (broken_) return false;
  if (flush.request == nullptr) {
    reached_ = true;
    return true;
  }
  const ucs_status_t status = ucx_.ucp_request_check_status(flush.request);
  if (status == UCS_INPROGRESS) return false;
  letGo(flush);
  if (status != UCS_OK) breakWith(status);
  reached_ = reached_ || status == UCS_OK;
  return status == UCS_OK;
}

void RmaEndpoint::letGo(Flush& flush) {
  if (flush.request != nullptr) ucx_.ucp_request_free(flush.request);
  flush.request = nullptr;
}

}  // namespace viaduct::ucx
