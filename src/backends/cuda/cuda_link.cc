#include "backends/cuda/cuda_link.h"

#include <utility>

#include "backends/cuda/peer_mapping.h"
#include "base/bytes.h"
#include "base/log.h"

namespace viaduct::cuda {

using core::LinkState;

CudaLink::CudaLink(CudaBackend& backend, core::LinkSeed seed, core::LinkHost& host)
    : backend_(backend), seed_(std::move(seed)), host_(host) {
  backend_.enlist(this);
  if (seed_.same_process) {
    state_ = {LinkState::Phase::kReady, "one process"};
  } else if (!seed_.unix_socket) {
    state_ = {LinkState::Phase::kUnusable,
              seed_.same_host ? "no Unix socket to the peer, so memory cannot be shared with it"
                              : "the peer is not known to be on this host"};
  } else {
    state_ = {LinkState::Phase::kReady, "memory shared by handles"};
    lender_ = std::make_shared<Lender>(seed_.peer, host_);
    backend_.adopt(lender_);
    borrower_.emplace(backend_.gpus(), backend_.copier(), host_, pins_,
                      [this] { backend_.ring(); });
  }
}

CudaLink::~CudaLink() { backend_.dismiss(this); }

LinkState CudaLink::state() const {
  LinkState out = state_;
  if (ready() && borrower_ && !borrower_->refusal().empty())
    out.text += "; " + borrower_->refusal();
  return out;
}

void CudaLink::receive(std::span<const std::byte> message, std::vector<core::Fd> fds) {
  if (!ready()) return;
  const Status done = handle(message, std::move(fds));
  if (done) return;
  state_ = {LinkState::Phase::kUnusable, done.error().operation + ": " + done.error().detail};
  host_.changed();
}

Status CudaLink::handle(std::span<const std::byte> message, std::vector<core::Fd> fds) {
  VIADUCT_TRY(const ShareMessage decoded, decodeShare(message));
  const auto* const offer = std::get_if<MemoryOffer>(&decoded);
  if (!borrower_ || (offer == nullptr && !fds.empty()))
    return Error{.code = Code::kProtocol, .operation = "cuda link", .detail = "unexpected message"};
  if (offer != nullptr) {
    VIADUCT_CHECK(backend_.listen());  // jobs wait for the memory, and then for the registrar
    return borrower_->receive(*offer, std::move(fds));
  }
  if (const auto* wanted = std::get_if<MemoryWanted>(&decoded))
    lender_->lend(wanted->pin, backend_.pinned(wanted->pin, *seed_.rights));
  else if (const auto* refused = std::get_if<MemoryRefused>(&decoded))
    borrower_->receive(*refused);
  else if (const auto* recalled = std::get_if<MemoryRecalled>(&decoded))
    borrower_->receive(*recalled);
  else if (const auto* returned = std::get_if<MemoryReturned>(&decoded))
    lender_->returned(returned->pin);
  return Ok{};
}

void CudaLink::addPin(const core::RemotePin& pin) {
  const auto key = decodeKey(pin.key);
  if (!ready() || !key) return;
  if (borrower_) return borrower_->announce(pin.info, *key);
  auto memory = findPinned(key->pin);
  if (!memory || memory->address != pin.info.address || memory->bytes != pin.info.bytes) return;
  if (memory->isDevice()) {
    // If the GPU cannot be opened here, transfers go through host memory of both agents.
    if (const Status used = backend_.use(*memory); !used) {
      base::log(base::LogLevel::kWarning, "cuda: no direct copies of {}'s memory: {}", seed_.peer,
                used.error().text());
      return;
    }
  }
  pins_.insert_or_assign(pin.info.slot, CopierPin{std::move(memory), backend_.copier()->tick()});
}

void CudaLink::dropPin(std::uint32_t slot) {
  if (borrower_) return borrower_->drop(slot);
  pins_.erase(slot);
}

const CopierPins& CudaLink::pinsFor(const core::Work& work) {
  if (borrower_) borrower_->request(work.ops);
  return pins_;
}

std::optional<std::string_view> CudaLink::reaches(OpKind kind, std::uint32_t local_pin,
                                                  std::uint32_t remote_pin) const {
  const PinnedMemory* const local = backend_.copier()->find(local_pin);
  const bool writes = kind == OpKind::kWrite;
  if (!ready() || local == nullptr || (!writes && !local->writable)) return std::nullopt;
  const auto pageable = [](const PinnedMemory& memory) {
    return memory.registration == PinnedMemory::RegistrationState::kRefused;
  };
  if (borrower_) {
    const auto way = borrower_->reaches(*local, remote_pin);
    return way && pageable(*local) ? "pageable" : way;
  }
  const auto found = pins_.find(remote_pin);
  if (found == pins_.end()) return std::nullopt;
  const PinnedMemory& remote = *found->second.memory;
  if (remote.withdrawn() || (writes && !remote.writable) || !canCopy(*local, remote))
    return std::nullopt;
  return pageable(*local) || pageable(remote) ? "pageable" : "direct";
}

// Whether a GPU can copy between the two pins. The driver copies memory of cuMemAlloc between any
// two GPUs. Other memory has to be open to the GPU of the local memory.
bool CudaLink::canCopy(const PinnedMemory& local, const PinnedMemory& remote) const {
  if (!local.isDevice() || !remote.isDevice()) return local.isDevice() || remote.isDevice();
  const auto gpu = backend_.gpus()->find(local.buffer->context->ordinal());
  return gpu && (remote.buffer->facts.memory_class == MemoryClass::kLegacy ||
                 kernelsMayReach(*gpu, *remote.buffer));
}

void CudaLink::close(core::Completions& out) {
  backend_.copier()->close(*this, out);
  pins_.clear();
  if (borrower_) borrower_->close();
  if (lender_) lender_->detach();
  if (state_.phase != LinkState::Phase::kUnusable) state_ = {LinkState::Phase::kUnusable, "closed"};
}

std::function<bool()> CudaLink::settling() const {
  return [here = Copier::settling(backend_.copier()), lender = lender_] {
    return here() && (!lender || lender->settled());
  };
}

}  // namespace viaduct::cuda
