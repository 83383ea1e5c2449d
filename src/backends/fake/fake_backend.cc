// The reference backend: copies between agents of one process. It shows the duties of a backend;
// docs/adding-a-backend.md has the reasons. If FakeOptions::far is set, it also reaches other
// processes of this host, but without the fences of a real backend. That is for tests of programs
// that have to detect wrong bytes.
#include <fmt/format.h>
#include <sys/uio.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <utility>

#include "backends/fake/facts.h"
#include "backends/fake/fake_rail.h"
#include "base/guarded.h"
#include "core/backend.h"

namespace viaduct::fake {
namespace {

using core::Bytes;

// A pin. The number is its key, so that a copy planned for an earlier pin does not reach a
// later one that has its slot.
struct FakePin {
  Segment memory;
  std::uint64_t number = 0;
};
// The pins of all fake backends of this process, by backend and slot. A copy holds the lock, so
// unpin() returns only when no thread of this process copies the memory.
using Board = std::map<std::uint64_t, std::map<std::uint32_t, FakePin>>;
base::Guarded<Board>& board() {
  static base::Guarded<Board> the_board;
  return the_board;
}

bool covers(const Segment& pin, std::uint64_t address, std::uint64_t bytes) {
  return address >= pin.address && bytes <= pin.bytes && address - pin.address <= pin.bytes - bytes;
}

std::byte* pointer(std::uint64_t address) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): only here a registered address becomes a pointer
  return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(address));
}

Error unregistered(const core::Op& op, OpKind kind) {
  return {.code = Code::kDenied,
          .operation = opKindName(kind),
          .detail = fmt::format("{} bytes at {:#x} are not registered", op.bytes, op.remote),
          .device = "fake"};
}

// Copies from or to the pin of the peer that has this number.
Status copy(std::uint64_t peer, std::uint64_t number, const core::Op& op, OpKind kind) {
  return board().with([&](Board& all) -> Status {
    const auto& pins = all[peer];
    const auto pin = pins.find(op.remote_pin);
    if (pin == pins.end() || pin->second.number != number ||
        !covers(pin->second.memory, op.remote, op.bytes))
      return unregistered(op, kind);
    std::byte* from = pointer(kind == OpKind::kWrite ? op.local : op.remote);
    std::memmove(pointer(kind == OpKind::kWrite ? op.remote : op.local), from, op.bytes);
    return Ok{};
  });
}

Status copyFar(int pid, const core::Op& op, OpKind kind) {
  if (op.bytes == 0) return Ok{};
  const iovec local{pointer(op.local), op.bytes};
  const iovec remote{pointer(op.remote), op.bytes};
  const bool writes = kind == OpKind::kWrite;
  const auto call = writes ? ::process_vm_writev : ::process_vm_readv;
  if (call(pid, &local, 1, &remote, 1, 0) == static_cast<ssize_t>(op.bytes)) return Ok{};
  return systemError(Code::kPeerLost, writes ? "process_vm_writev" : "process_vm_readv", errno);
}

using FakeRails = std::vector<std::unique_ptr<core::Rail>>;

class FakeLink final : public core::Link {
 public:
  FakeLink(const core::LinkSeed& seed, const FakeRails& rails, const FakeOptions& options,
           bool exhausted)
      : rails_(rails), way_(options.pose != 0 ? "rdma" : "fake"), state_{kReady, way_} {
    base::Reader reader(seed.address);
    peer_ = reader.get<std::uint64_t>();
    if (!seed.same_process && options.far != 0 && seed.same_host) pid_ = seed.pid;
    if ((!seed.same_process && pid_ == 0) || !reader.finished())
      state_ = {core::LinkState::Phase::kUnusable, "the peer is in another process"};
    if (exhausted) state_ = {core::LinkState::Phase::kUnusable, "no descriptors", true};
  }
  core::LinkState state() const override { return state_; }
  // Fake links exchange no messages.
  void receive(std::span<const std::byte>, std::vector<core::Fd>) override {}
  void addPin(const core::RemotePin& pin) override {
    announced_[pin.info.slot] = {{.address = pin.info.address, .bytes = pin.info.bytes},
                                 base::Reader(pin.key).get<std::uint64_t>()};
  }
  void dropPin(std::uint32_t slot) override { announced_.erase(slot); }
  std::optional<std::string_view> reaches(OpKind, std::uint32_t, std::uint32_t) const override {
    return way_;
  }
  bool servedBy(const core::Rail& rail) const override {
    return !static_cast<const FakeRail&>(rail).out();
  }
  void close(core::Completions& out) override {
    for (const auto& rail : rails_) static_cast<FakeRail&>(*rail).drop(*this, out);
  }

  Status carry(const core::Op& op, OpKind kind) const {
    const auto pin = announced_.find(op.remote_pin);
    if (pin == announced_.end() || !covers(pin->second.memory, op.remote, op.bytes))
      return unregistered(op, kind);
    return pid_ == 0 ? copy(peer_, pin->second.number, op, kind) : copyFar(pid_, op, kind);
  }

 private:
  static constexpr auto kReady = core::LinkState::Phase::kReady;
  const FakeRails& rails_;
  const std::string way_;
  core::LinkState state_;
  std::uint64_t peer_ = 0;
  int pid_ = 0;  // the peer's pid if it is in another process; else 0
  std::map<std::uint32_t, FakePin> announced_;  // the peer's pins
};

class FakeBackend final : public core::Backend {
 public:
  explicit FakeBackend(const FakeOptions& options) : options_(options) {
    static std::atomic<std::uint64_t> last{0};
    id_ = ++last;
    for (std::uint32_t i = 0; i < options.rails; ++i)
      rails_.push_back(std::make_unique<FakeRail>(
          i, options.lie, [](core::Link& link, const core::Op& op, OpKind kind) {
            return static_cast<FakeLink&>(link).carry(op, kind);
          }));
  }
  ~FakeBackend() override {
    board().with([&](Board& all) { all.erase(id_); });
  }
  FakeBackend(const FakeBackend&) = delete;
  FakeBackend& operator=(const FakeBackend&) = delete;

  const core::Capabilities& can() const override { return can_; }
  std::span<const std::unique_ptr<core::Rail>> rails() override { return rails_; }
  Bytes address() const override { return base::Writer().put(id_).take(); }
  std::unique_ptr<core::Link> link(core::LinkSeed seed, core::LinkHost& /*host*/) override {
    return std::make_unique<FakeLink>(seed, rails_, options_, links_++ < options_.exhaust);
  }
  // The initiator copies by itself, and reaches the pins that were announced to it. A real backend
  // checks the audience at the target.
  Result<Bytes> pinFor(const core::Audience& /*audience*/, std::uint32_t slot,
                       const Segment& memory) override {
    if (memory.kind != MemoryKind::kHost)
      return Error{.code = Code::kUnsupported,
                   .operation = "pin",
                   .detail = "host memory only",
                   .device = "fake"};
    return board().with([&](Board& all) {
      static std::uint64_t last = 0;
      const auto [pin, is_new] = all[id_].try_emplace(slot, FakePin{memory, last + 1});
      if (is_new) ++last;
      return base::Writer().put(pin->second.number).take();
    });
  }
  Status unpin(std::uint32_t slot) override {
    board().with([&](Board& all) { all[id_].erase(slot); });
    return Ok{};
  }
  core::RailMask near(std::uint32_t slot) const override {
    core::RailMask out = 0;
    for (std::uint32_t i = slot % options_.nodes; i < options_.rails; i += options_.nodes)
      out |= core::RailMask{1} << i;
    return out;
  }

 private:
  const FakeOptions options_;
  const core::Capabilities can_{.name = "fake",
                                .memory = {MemoryKind::kHost},
                                .same_host = true,
                                .own_memory = true,
                                .rdma = options_.pose != 0,
                                .side_by_side = true,
                                .preference = 90};
  std::uint64_t id_ = 0;
  std::uint32_t links_ = 0;  // number of links opened so far
  FakeRails rails_;
};

}  // namespace

Result<std::unique_ptr<core::Backend>> open(const core::BackendContext& context) {
  return std::unique_ptr<core::Backend>(
      std::make_unique<FakeBackend>(kOptions.of(context.settings)));
}

}  // namespace viaduct::fake
