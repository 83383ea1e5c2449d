// The reference backend: copies between agents of one process, through seeded weather. Read it to
// learn what a backend has to do; docs/adding-a-backend.md says why.
#include <fmt/format.h>

#include <atomic>
#include <cstring>
#include <map>
#include <utility>

#include "backends/fake/fake_rail.h"
#include "backends/fake/weather.h"
#include "base/guarded.h"
#include "core/backend.h"

namespace viaduct::fake {
namespace {

using core::Bytes;

// What every fake backend of this process has pinned: by backend, then slot. The lock is held
// while bytes are copied, so that unpin() returns only when nobody is at them.
using Board = std::map<std::uint64_t, std::map<std::uint32_t, Segment>>;
base::Guarded<Board>& board() {
  static base::Guarded<Board> the_board;
  return the_board;
}

bool covers(const Segment& pin, std::uint64_t address, std::uint64_t bytes) {
  return address >= pin.address && bytes <= pin.bytes && address - pin.address <= pin.bytes - bytes;
}

std::byte* pointer(std::uint64_t address) {
  return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(address));
}

Status copy(std::uint64_t peer, const core::Op& op, OpKind kind) {
  return board().with([&](Board& all) -> Status {
    const auto& pins = all[peer];
    const auto pin = pins.find(op.remote_pin);
    if (pin == pins.end() || !covers(pin->second, op.remote, op.bytes))
      return Error{
          .code = Code::kDenied,
          .operation = opKindName(kind),
          .detail = fmt::format("{} bytes at {:#x} are not registered", op.bytes, op.remote),
          .device = "fake"};
    std::byte* from = pointer(kind == OpKind::kWrite ? op.local : op.remote);
    std::memmove(pointer(kind == OpKind::kWrite ? op.remote : op.local), from, op.bytes);
    return Ok{};
  });
}

using Rails = std::vector<std::unique_ptr<core::Rail>>;

class FakeLink final : public core::Link {
 public:
  FakeLink(const core::LinkSeed& seed, core::LinkHost& host, const Rails& rails)
      : host_(host), rails_(rails) {
    base::Reader reader(seed.address);
    peer_ = reader.get<std::uint64_t>();
    if (!seed.same_process || !reader.finished())
      state_ = {core::LinkState::Phase::kUnusable, "the peer is in another process"};
  }
  core::LinkState state() const override { return state_; }
  // Two fakes have nothing to tell each other, and need no keys.
  void receive(std::span<const std::byte>, std::vector<core::Fd>) override {}
  void addPin(const core::RemotePin&) override {}
  void dropPin(std::uint32_t) override {}
  std::optional<std::string_view> reaches(OpKind, std::uint32_t, std::uint32_t) const override {
    return "fake";
  }
  bool servedBy(const core::Rail&) const override { return true; }
  void close(core::Completions& out) override {
    for (const auto& rail : rails_) static_cast<FakeRail&>(*rail).drop(*this, out);
  }

  std::uint64_t peer() const { return peer_; }
  void die() {
    state_ = {core::LinkState::Phase::kUnusable, "killed by the weather"};
    host_.changed();
  }

 private:
  core::LinkHost& host_;
  const Rails& rails_;
  std::uint64_t peer_ = 0;
  core::LinkState state_{core::LinkState::Phase::kReady, "fake"};
};

class FakeBackend final : public core::Backend {
 public:
  explicit FakeBackend(const Weather& weather) {
    static std::atomic<std::uint64_t> last{0};
    id_ = ++last;
    for (const char* name : {"fake0", "fake1"})
      rails_.push_back(std::make_unique<FakeRail>(
          name, weather,
          [](core::Link& link, const core::Op& op, OpKind kind) {
            return copy(static_cast<FakeLink&>(link).peer(), op, kind);
          },
          [](core::Link& link) { static_cast<FakeLink&>(link).die(); }));
  }
  ~FakeBackend() override {
    board().with([&](Board& all) { all.erase(id_); });
  }
  FakeBackend(const FakeBackend&) = delete;
  FakeBackend& operator=(const FakeBackend&) = delete;

  const core::Capabilities& can() const override { return can_; }
  std::span<const std::unique_ptr<core::Rail>> rails() override { return rails_; }
  Bytes address() const override { return base::Writer().put(id_).take(); }
  std::unique_ptr<core::Link> link(core::LinkSeed seed, core::LinkHost& host) override {
    return std::make_unique<FakeLink>(seed, host, rails_);
  }
  Result<Bytes> pin(std::uint32_t slot, const Segment& memory) override {
    if (memory.kind != MemoryKind::kHost)
      return Error{.code = Code::kUnsupported,
                   .operation = "pin",
                   .detail = "host memory only",
                   .device = "fake"};
    board().with([&](Board& all) { all[id_][slot] = memory; });
    return Bytes{};
  }
  Status unpin(std::uint32_t slot) override {
    board().with([&](Board& all) { all[id_].erase(slot); });
    return Ok{};
  }

 private:
  const core::Capabilities can_{
      .name = "fake", .memory = {MemoryKind::kHost}, .same_host = true, .preference = 90};
  std::uint64_t id_ = 0;
  Rails rails_;
};

}  // namespace

Result<std::unique_ptr<core::Backend>> open(const core::BackendContext& context) {
  VIADUCT_TRY(const Weather weather, parseWeather(context.settings.weather));
  return std::unique_ptr<core::Backend>(std::make_unique<FakeBackend>(weather));
}

}  // namespace viaduct::fake
