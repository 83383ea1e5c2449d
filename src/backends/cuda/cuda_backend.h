// The backend for memory of GPUs of this host. Threads: as core::Backend.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "backends/cuda/copier.h"
#include "backends/cuda/lender.h"
#include "base/poller.h"
#include "core/backend.h"
#include "cuda/end_bell.h"

namespace viaduct::cuda {

class CudaLink;

class CudaBackend final : public core::Backend {
 public:
  explicit CudaBackend(const core::BackendContext& context);
  ~CudaBackend() override;
  CudaBackend(const CudaBackend&) = delete;
  CudaBackend& operator=(const CudaBackend&) = delete;

  const core::Capabilities& can() const override;
  std::shared_ptr<core::DeviceMemory> deviceMemory() override { return device_memory_; }
  std::span<const std::unique_ptr<core::Rail>> rails() override { return rails_; }
  std::string_view description() const override { return description_; }
  core::Bytes address() const override { return {}; }
  std::unique_ptr<core::Link> link(core::LinkSeed seed, core::LinkHost& host) override;
  Result<core::Bytes> pinFor(const core::Audience& audience, std::uint32_t slot,
                             const Segment& memory) override;
  Status unpin(std::uint32_t slot) override;
  std::function<bool()> close() override;

  // Used by the links.
  const std::shared_ptr<Copier>& copier() const { return copier_; }
  const std::shared_ptr<OpenGpus>& gpus() const { return gpus_; }
  // Null: this agent has no such pin.
  const PinnedMemory* pinned(std::uint64_t number, const core::PinRights& rights) const;
  void enlist(CudaLink* link) { links_.push_back(link); }
  void dismiss(CudaLink* link) { std::erase(links_, link); }
  void adopt(std::shared_ptr<Lender> lender);
  // Opens the bell and watches it, at the first call.
  Status listen();
  void ring() { bell_->ring(); }
  // After a short pause, has the agent look once more for ended batches whose callbacks have not
  // come.
  void lookLater();
  // Returns memory of peers that no batch uses any more.
  void giveBack();
  // Opens the GPU of memory that is about to be copied, unless it is open. Another agent of this
  // process may have pinned the memory.
  Status use(const PinnedMemory& memory);

 private:
  base::Poller& poller_;
  const std::shared_ptr<EndBell> bell_;
  const std::shared_ptr<OpenGpus> gpus_;
  const std::shared_ptr<Copier> copier_;
  const std::shared_ptr<core::DeviceMemory> device_memory_;
  std::vector<std::unique_ptr<core::Rail>> rails_;
  base::Poller::Id watch_ = 0, timer_ = 0;
  std::vector<CudaLink*> links_;
  // The lenders of all links, and of closed links until they are settled.
  std::vector<std::shared_ptr<Lender>> lenders_;
  std::unordered_map<std::uint64_t, std::uint32_t> slots_;  // by PinnedMemory::number
  std::string description_;
  bool closed_ = false;
};

}  // namespace viaduct::cuda
