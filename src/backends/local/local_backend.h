// The backend for peers on the same host. Threads: as core::Backend says.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "backends/local/copy_pool.h"
#include "backends/local/live_table.h"
#include "backends/local/own_gate.h"
#include "backends/local/populator.h"
#include "base/budget.h"
#include "core/backend.h"

namespace viaduct::local {

class LocalLink;
class LocalRail;

class LocalBackend final : public core::Backend {
 public:
  LocalBackend(const core::BackendContext& context, std::shared_ptr<LiveTable> live);
  ~LocalBackend() override;
  LocalBackend(const LocalBackend&) = delete;
  LocalBackend& operator=(const LocalBackend&) = delete;

  const core::Capabilities& can() const override;
  std::span<const std::unique_ptr<core::Rail>> rails() override { return rails_; }
  core::Bytes address() const override { return {}; }
  std::unique_ptr<core::Link> link(core::LinkSeed seed, core::LinkHost& host) override;
  Result<core::Bytes> pinFor(const core::Audience& audience, std::uint32_t slot,
                             const Segment& memory) override;
  Status unpin(std::uint32_t slot) override;

  // Used by the links and the rail.
  CopyPool& copyPool() { return copy_pool_; }
  Populator& populator() { return populator_; }
  const std::shared_ptr<LiveTable>& live() const { return live_; }
  bool pinned(std::uint32_t slot) const { return live_->generation(slot) != 0; }
  std::uint64_t now() const { return clock_; }
  std::uint64_t tick() { return ++clock_; }
  void adopt(const std::shared_ptr<OwnGate>& gate) {
    std::erase_if(gates_, [](const auto& known) { return known.expired(); });
    gates_.push_back(gate);
  }
  // The limit on memory of all peers that is mapped here.
  base::Budget& mapped() { return mapped_; }
  void enlist(LocalLink* link) { links_.push_back(link); }
  void dismiss(LocalLink* link) { std::erase(links_, link); }

  struct FileIdentity {
    std::uint64_t device = 0, inode = 0;
    core::Audience audience = core::Audience::everybody();
    friend auto operator<=>(const FileIdentity&, const FileIdentity&) = default;
  };
  // A memfd that contains registrations. The links of its audience to other processes offer it to
  // their peers. It is kept until its last pin is gone.
  struct File {
    base::Fd fd;
    FileIdentity identity = {};
    std::uint64_t bytes = 0;
    std::uint32_t pins = 0;
  };
  const std::unordered_map<std::uint32_t, File>& files() const { return files_; }

 private:
  // The gates of peers that may still be copying a withdrawn pin.
  struct Withdrawal {
    struct Inside {
      std::shared_ptr<OwnGate> gate;
      OwnGate::TurnNumber turn;
    };
    std::vector<Inside> inside = {};
    Clock::time_point begun;
  };
  struct PinRecord {
    bool in_file = false;
    std::uint32_t file = 0;
    Populator::RangeId populating = 0;
    std::optional<Withdrawal> withdrawal = {};
  };
  bool holdFile(const core::Audience& audience, const Segment& memory, std::uint32_t& id);
  void letGoOfFile(std::uint32_t id);
  Withdrawal withdraw(std::uint32_t slot);
  Status look(Withdrawal& withdrawal) const;

  const base::Poller& poller_;  // its clock
  std::chrono::milliseconds patience_;
  std::shared_ptr<LiveTable> live_;
  CopyPool copy_pool_;
  Populator populator_;
  std::vector<std::unique_ptr<core::Rail>> rails_;
  std::uint64_t clock_ = 0;  // counts registrations, ours and the peers'
  std::unordered_map<std::uint32_t, PinRecord> pins_;
  std::unordered_map<std::uint32_t, File> files_;
  std::map<FileIdentity, std::uint32_t> file_ids_;
  std::uint32_t next_file_ = 0;
  base::Budget mapped_;
  std::vector<LocalLink*> links_;
  // The gates of all links, and of closed links until they are settled. A link and its settling()
  // own them.
  std::vector<std::weak_ptr<OwnGate>> gates_;
};

// The bytes of this host's memory. No more than this is mapped of one peer's memory.
std::uint64_t hostMemory();

Result<std::unique_ptr<core::Backend>> open(const core::BackendContext& context);

}  // namespace viaduct::local
