// The backends of an agent. Threads: under the agent's lock.
#pragma once

#include <viaduct/agent.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "agent/faults/fault_source.h"
#include "core/backend.h"

namespace viaduct::agent {

class Backends {
 public:
  // Opens the backends that the settings ask for, and makes each inject the `faults`, if there are
  // any. An error: a backend that the settings name cannot be opened.
  Status open(const core::BackendContext& context, FaultSource* faults);
  void add(std::unique_ptr<core::Backend> backend) { open_.push_back(std::move(backend)); }
  // Returns what core::Backend::close() has returned.
  std::vector<std::function<bool()>> close();
  void leak() { static_cast<void>(new auto(std::move(open_))); }  // in a fork()ed child

  std::span<const std::unique_ptr<core::Backend>> all() const { return open_; }
  core::Backend& operator[](std::size_t index) { return *open_[index]; }
  std::size_t count() const { return open_.size(); }
  // Whether the agent needs the staging backend for an open backend. That is one with storage, with
  // memory of GPUs, or with a Capabilities::pack_below.
  bool needStages() const;
  // core::Capabilities::checks_rights of the open backend with this name.
  bool checksRights(std::string_view name) const;
  // The open backends first, in the order in which routes try them.
  std::vector<BackendInfo> infos() const;

  // The skill, such as core::Storage, of the first backend that has it for this kind of memory.
  template <class Skill>
  Result<std::shared_ptr<Skill>> skill(MemoryKind kind,
                                       std::shared_ptr<Skill> (core::Backend::*ask)()) const {
    for (const auto& backend : open_)
      if (std::ranges::find(backend->can().memory, kind) != backend->can().memory.end())
        if (auto found = (*backend.*ask)()) return found;
    return noneTakes(kind);
  }
  // The skill of the first backend that has it; null: no backend reaches memory of GPUs.
  std::shared_ptr<core::DeviceMemory> gpus() const;
  void giveUp(std::uint64_t whole) const;  // core::Storage::giveUp() at each storage

 private:
  Status openOne(const core::BackendEntry& entry, const core::BackendContext& context,
                 FaultSource* faults);
  static Error noneTakes(MemoryKind kind);

  std::vector<std::unique_ptr<core::Backend>> open_;
  std::vector<BackendInfo> left_out_;
};

}  // namespace viaduct::agent
