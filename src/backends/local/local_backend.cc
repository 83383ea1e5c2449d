#include "backends/local/local_backend.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "backends/local/local_link.h"

namespace viaduct::local {

using core::Bytes;

namespace {

constexpr unsigned kYields = 1000;  // looks before the wait for a peer sleeps in between

}  // namespace

// The one rail: this machine's memory.
class LocalRail final : public core::Rail {
 public:
  explicit LocalRail(LocalBackend& backend) : backend_(backend) {}
  std::string_view name() const override { return "memory"; }
  std::size_t post(const core::Work& work) override {
    PeerMemory* peer = static_cast<LocalLink*>(work.link)->peer();
    return peer == nullptr ? 0 : backend_.crew().post(work, *peer, backend_.now());
  }
  void poll(core::Completions& out) override { backend_.crew().poll(out); }
  void cancel(core::Tag tag) override { backend_.crew().cancel(tag); }
  bool busy() const override { return backend_.crew().busy(); }
  bool mayHaveEnded() const override { return true; }

 private:
  LocalBackend& backend_;
};

LocalBackend::LocalBackend(const Settings& settings, std::shared_ptr<LiveTable> live)
    : patience_(settings.grace), live_(std::move(live)), crew_(*live_, settings.copy_threads) {
  rails_.push_back(std::make_unique<LocalRail>(*this));
}

LocalBackend::~LocalBackend() = default;

const core::Capabilities& LocalBackend::can() const {
  static const core::Capabilities facts{
      .name = "local", .memory = {MemoryKind::kHost}, .same_host = true, .preference = 10};
  return facts;
}

std::unique_ptr<core::Link> LocalBackend::link(core::LinkSeed seed, core::LinkHost& host) {
  auto link = std::make_unique<LocalLink>(*this, std::move(seed), host);
  link->open();
  return link;
}

Result<Bytes> LocalBackend::pin(std::uint32_t slot, const Segment& memory) {
  if (memory.kind != MemoryKind::kHost || memory.bytes > kMostPinBytes) return Bytes{};
  if (slot >= kSlots)
    return Error{.code = Code::kExhausted,
                 .operation = "pin",
                 .detail = fmt::format("more than {} registrations", kSlots)};
  PinRecord record;
  record.in_file = holdFile(memory, record.file);
  pins_.insert_or_assign(slot, record);
  const std::uint64_t generation = tick();
  live_->set(slot, generation);
  return encodeKey({.generation = generation,
                    .in_file = record.in_file,
                    .file = record.file,
                    .offset = record.in_file ? memory.fd_offset : 0});
}

// Whether peers may and can map this memory: its owner shares the file, which is a memfd that
// cannot shrink. Such a file is offered to all links once, before the key that names it goes out.
bool LocalBackend::holdFile(const Segment& memory, std::uint32_t& id) {
  struct stat facts{};
  if (!memory.share_file || memory.fd < 0 || ::fstat(memory.fd, &facts) != 0) return false;
  const int seals = ::fcntl(memory.fd, F_GET_SEALS);
  const auto bytes = static_cast<std::uint64_t>(facts.st_size);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || memory.fd_offset > bytes ||
      memory.bytes > bytes - memory.fd_offset)
    return false;
  const auto same = std::find_if(files_.begin(), files_.end(), [&](const auto& known) {
    return known.second.device == facts.st_dev && known.second.inode == facts.st_ino;
  });
  if (same != files_.end()) {
    id = same->first;
    ++same->second.pins;
    return true;
  }
  base::Fd own(::fcntl(memory.fd, F_DUPFD_CLOEXEC, 0));
  if (!own) return false;
  id = ++next_file_;
  const auto& file = files_
                         .emplace(id, File{.fd = std::move(own),
                                           .device = facts.st_dev,
                                           .inode = facts.st_ino,
                                           .bytes = bytes,
                                           .pins = 1})
                         .first->second;
  for (LocalLink* link : links_) link->offerFile(id, file);
  return true;
}

void LocalBackend::letGoOfFile(std::uint32_t id) {
  const auto file = files_.find(id);
  if (file == files_.end() || --file->second.pins != 0) return;
  files_.erase(file);
  for (LocalLink* link : links_) link->withdrawFile(id);
}

Status LocalBackend::unpin(std::uint32_t slot) {
  const auto pin = pins_.find(slot);
  if (pin == pins_.end()) return Ok{};  // of a kind that this backend does not move
  live_->clear(slot);
  crew_.drain();
  Status drained = drainGates();
  const PinRecord record = pin->second;
  pins_.erase(pin);
  if (record.in_file) letGoOfFile(record.file);
  return drained;
}

// Waits until every peer's chunk that may have seen the table as it was before is over.
Status LocalBackend::drainGates() {
  forgetSettledGates();
  std::vector<std::pair<OwnGate*, Gate::Leaving>> inside;
  inside.reserve(gates_.size());
  for (const auto& gate : gates_) inside.emplace_back(gate.get(), gate->gate().turn());
  const auto gone = [](const auto& entry) {
    return entry.first->gate().left(entry.second) || entry.first->dead();
  };
  const auto frozen = [](const auto& entry) { return entry.first->waitedInVain(); };
  const auto until = Clock::now() + patience_;
  for (unsigned looks = 0;; ++looks) {
    std::erase_if(inside, [&](const auto& entry) {
      if (!gone(entry)) return false;
      entry.first->setWaitedInVain(false);
      return true;
    });
    if (inside.empty()) return Ok{};
    // Our own agent must not stand still again and again for a peer that is known to.
    if (std::ranges::all_of(inside, frozen) || Clock::now() >= until) break;
    if (looks < kYields)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  for (const auto& entry : inside) entry.first->setWaitedInVain(true);
  return Error{.code = Code::kPeerLost,
               .operation = "unpin",
               .detail = "a peer was stopped in the middle of a copy and may still finish it",
               .peer = inside.front().first->peer(),
               .remedy = "keep the memory until the peer has died or its settled() is true"};
}

Result<std::unique_ptr<core::Backend>> open(const core::BackendContext& context) {
  VIADUCT_TRY(LiveTable live, LiveTable::make());
  return std::unique_ptr<core::Backend>(std::make_unique<LocalBackend>(
      context.settings, std::make_shared<LiveTable>(std::move(live))));
}

}  // namespace viaduct::local
