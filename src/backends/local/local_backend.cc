#include "backends/local/local_backend.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "backends/local/cma.h"
#include "backends/local/local_link.h"
#include "base/shared_memory.h"

namespace viaduct::local {

using core::Bytes;

namespace {

// The time that a withdrawal waits for peers for which an earlier one waited in vain. It suffices
// for a stopped peer that has just been continued.
constexpr std::chrono::milliseconds kStuckPatience{10};
// The limit on mapped memory of all peers, in multiples of this host's memory. It exceeds 1,
// because several peers may pin the same memory.
constexpr std::uint64_t kMostMappedOfAll = 8;

}  // namespace

// The only rail: this machine's memory.
class LocalRail final : public core::Rail, public core::DirectMover {
 public:
  explicit LocalRail(LocalBackend& backend) : backend_(backend) {}
  std::string_view name() const override { return "memory"; }
  std::size_t post(const core::Work& work) override {
    PeerMemory* peer = static_cast<LocalLink*>(work.link)->peer();
    return peer == nullptr ? 0 : backend_.copyPool().post(work, *peer, backend_.now());
  }
  void poll(core::Completions& out) override { backend_.copyPool().poll(out, wanted); }
  void cancel(const core::Sink& sink) override { backend_.copyPool().cancel(sink); }
  bool busy() const override { return backend_.copyPool().busy(); }
  void collect(core::Completions& out) override { backend_.copyPool().collect(out); }
  core::DirectMover* direct() override { return this; }
  bool fits(std::span<const core::Op> ops) const override { return CopyPool::fits(ops); }
  Outcome moveNow(const core::Work& work, Progress& so_far,
                  const std::atomic<bool>& pause) override {
    PeerMemory* peer = static_cast<LocalLink*>(work.link)->peer();
    if (peer == nullptr) return Outcome::kFailed;
    return backend_.copyPool().copyNow(work, *peer, backend_.now(), so_far, pause);
  }

 private:
  LocalBackend& backend_;
};

std::uint64_t hostMemory() {
  return static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
         static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

LocalBackend::LocalBackend(const core::BackendContext& context, std::shared_ptr<LiveTable> live)
    : poller_(context.poller),
      patience_(context.settings.grace),
      live_(std::move(live)),
      copy_pool_(*live_, context.settings),
      populator_(context.settings.populate),
      mapped_(kMostMappedOfAll * hostMemory()) {
  rails_.push_back(std::make_unique<LocalRail>(*this));
}

LocalBackend::~LocalBackend() {
  for (const auto& known : gates_)
    if (auto gate = known.lock(); gate && !gate->settled()) keepUntilSettled(std::move(gate));
}

const core::Capabilities& LocalBackend::can() const {
  static const core::Capabilities facts{.name = "local",
                                        .memory = {MemoryKind::kHost},
                                        .same_host = true,
                                        .own_memory = true,
                                        .side_by_side = true,
                                        .preference = 10};
  return facts;
}

std::unique_ptr<core::Link> LocalBackend::link(core::LinkSeed seed, core::LinkHost& host) {
  auto link = std::make_unique<LocalLink>(*this, std::move(seed), host);
  link->open();
  return link;
}

Result<Bytes> LocalBackend::pinFor(const core::Audience& audience, std::uint32_t slot,
                                   const Segment& memory) {
  if (memory.kind != MemoryKind::kHost || memory.bytes > kMostPinBytes) return Bytes{};
  if (slot >= kSlots)
    return Error{.code = Code::kExhausted,
                 .operation = "pin",
                 .detail = fmt::format("more than {} registrations", kSlots)};
  copy_pool_.expect(memory.bytes);
  PinRecord record;
  record.in_file = holdFile(audience, memory, record.file);
  if (record.in_file)
    record.populating = populator_.add(
        {static_cast<std::byte*>(pointerTo(memory.address)), memory.bytes}, Populator::Pages::kAll);
  pins_.insert_or_assign(slot, record);
  const std::uint64_t generation = tick();
  live_->set(slot, generation);
  return encodeKey({.generation = generation,
                    .in_file = record.in_file,
                    .file = record.file,
                    .offset = record.in_file ? memory.fd_offset : 0});
}

// Keeps the file of the memory if peers may map it. False: they may not. The owner has to share the
// file, and no holder of it may be able to make our accesses fault. Read-only pins are refused,
// because a holder may write. The links of the audience to other processes send such a file once,
// before the key that names it.
bool LocalBackend::holdFile(const core::Audience& audience, const Segment& memory,
                            std::uint32_t& id) {
  struct stat facts{};
  if (!memory.share_file || memory.fd < 0 || memory.access == MemoryAccess::kReadOnly ||
      ::fstat(memory.fd, &facts) != 0 || !base::SharedMemory::accessOfPeers(memory.fd))
    return false;
  const auto bytes = static_cast<std::uint64_t>(facts.st_size);
  if (memory.fd_offset > bytes || memory.bytes > bytes - memory.fd_offset) return false;
  const FileIdentity identity{facts.st_dev, facts.st_ino, audience};
  if (const auto same = file_ids_.find(identity); same != file_ids_.end()) {
    id = same->second;
    ++files_.at(id).pins;
    return true;
  }
  base::Fd own(::fcntl(memory.fd, F_DUPFD_CLOEXEC, 0));
  if (!own) return false;
  id = ++next_file_;
  file_ids_.emplace(identity, id);
  const File& file =
      files_
          .emplace(id, File{.fd = std::move(own), .identity = identity, .bytes = bytes, .pins = 1})
          .first->second;
  for (LocalLink* link : links_) link->offerFile(id, file);
  return true;
}

void LocalBackend::letGoOfFile(std::uint32_t id) {
  const auto file = files_.find(id);
  if (file == files_.end() || --file->second.pins != 0) return;
  for (LocalLink* link : links_) link->withdrawFile(id, file->second);
  file_ids_.erase(file->second.identity);
  files_.erase(file);
}

Status LocalBackend::unpin(std::uint32_t slot) {
  const auto pin = pins_.find(slot);
  if (pin == pins_.end()) return Ok{};  // this backend does not move such memory
  PinRecord& record = pin->second;
  if (!record.withdrawal) {
    populator_.remove(record.populating);
    record.withdrawal = withdraw(slot);
  }
  Status left = look(*record.withdrawal);
  if (!left && left.error().code == Code::kBusy) return left;
  if (record.in_file) letGoOfFile(record.file);
  pins_.erase(pin);
  return left;
}

LocalBackend::Withdrawal LocalBackend::withdraw(std::uint32_t slot) {
  live_->clear(slot);
  copy_pool_.drain();
  Withdrawal withdrawal{.begun = poller_.now()};
  withdrawal.inside.reserve(gates_.size());
  for (const auto& known : gates_) {
    auto gate = known.lock();
    if (!gate) continue;
    const auto turn = gate->withdraw();
    withdrawal.inside.push_back({std::move(gate), turn});
  }
  return withdrawal;
}

// Ok once each peer has ended the chunks that it began before the withdrawal, or is dead. Before
// that kBusy, and kPeerLost after the time to wait.
Status LocalBackend::look(Withdrawal& withdrawal) const {
  auto& inside = withdrawal.inside;
  std::erase_if(inside, [](const auto& one) { return one.gate->left(one.turn); });
  if (inside.empty()) return Ok{};
  const bool stuck = std::ranges::all_of(inside, [](const auto& one) { return one.gate->stuck(); });
  const auto patience = stuck ? std::min(patience_, kStuckPatience) : patience_;
  std::string peers;
  for (const auto& one : inside) peers += (peers.empty() ? "" : ", ") + one.gate->peer();
  Error why{.code = Code::kBusy,
            .operation = "unpin",
            .detail = "a peer is still copying",
            .peer = std::move(peers)};
  if (poller_.now() < withdrawal.begun + patience) return why;
  for (const auto& one : inside) one.gate->giveUp();
  why.code = Code::kPeerLost;
  why.detail = "a stopped peer may still finish its copy";
  why.remedy = "keep the memory until the peer has died or its settled() is true";
  return why;
}

namespace {

// Yama (ptrace_scope 1, as on Ubuntu) lets a process copy from its children only, unless the other
// process allows more. Without Yama the call fails, and nothing needs it.
void allowPeersToCopy() { ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); }

}  // namespace

Result<std::unique_ptr<core::Backend>> open(const core::BackendContext& context) {
  allowPeersToCopy();
  VIADUCT_TRY(LiveTable live, LiveTable::make());
  return std::unique_ptr<core::Backend>(
      std::make_unique<LocalBackend>(context, std::make_shared<LiveTable>(std::move(live))));
}

}  // namespace viaduct::local
