// The link to one peer, for one session. Threads: under the agent's lock.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "backends/cuda/borrower.h"
#include "backends/cuda/cuda_backend.h"
#include "core/backend.h"

namespace viaduct::cuda {

class CudaLink final : public core::Link {
 public:
  CudaLink(CudaBackend& backend, core::LinkSeed seed, core::LinkHost& host);
  ~CudaLink() override;
  CudaLink(const CudaLink&) = delete;
  CudaLink& operator=(const CudaLink&) = delete;

  core::LinkState state() const override;
  void receive(std::span<const std::byte> message, std::vector<core::Fd> fds) override;
  void addPin(const core::RemotePin& pin) override;
  void dropPin(std::uint32_t slot) override;
  std::optional<std::string_view> reaches(OpKind kind, std::uint32_t local_pin,
                                          std::uint32_t remote_pin) const override;
  bool servedBy(const core::Rail&) const override {
    return state_.phase == core::LinkState::Phase::kReady;
  }
  void close(core::Completions& out) override;
  std::function<bool()> settling() const override;

  // Used by the backend.
  // The pins of the peer. Asks for those that the work needs and that are not mapped.
  const CopierPins& pinsFor(const core::Work& work);
  void giveBack() {
    if (borrower_) borrower_->giveBack();
  }

 private:
  bool canCopy(const PinnedMemory& local, const PinnedMemory& remote) const;
  bool ready() const { return state_.phase == core::LinkState::Phase::kReady; }
  Status handle(std::span<const std::byte> message, std::vector<core::Fd> fds);

  CudaBackend& backend_;
  const core::LinkSeed seed_;
  core::LinkHost& host_;
  core::LinkState state_;
  CopierPins pins_;
  // Only if the peer is in another process of this host:
  std::shared_ptr<Lender> lender_;
  std::optional<Borrower> borrower_;
};

}  // namespace viaduct::cuda
