// Objects of an S3 store as segments: one rail, and a link to the own agent. The mover's thread
// does the work.
#include <sys/epoll.h>

#include <set>
#include <utility>

#include "backends/object/object_storage.h"
#include "move/own_link.h"

namespace viaduct::object {
namespace {

constexpr std::string_view kWay = "s3";

// The state that the parts of one backend share.
struct ObjectState {
  ObjectMover* mover = nullptr;                     // null before the first object
  std::set<std::uint32_t> objects = {}, host = {};  // slots of pins
};

class ObjectRail final : public core::Rail {
 public:
  explicit ObjectRail(const ObjectState& shared) : shared_(shared) {}
  std::string_view name() const override { return "object0"; }
  std::size_t post(const core::Work& work) override { return shared_.mover->post(work); }
  void poll(core::Completions& out) override {
    if (shared_.mover != nullptr) shared_.mover->poll(out);
  }
  void cancel(const core::Sink& sink) override { shared_.mover->cancel(sink); }
  bool busy() const override { return false; }  // the mover's descriptor wakes the agent

 private:
  const ObjectState& shared_;
};

class ObjectLink final : public move::OwnLink {
 public:
  explicit ObjectLink(const ObjectState& shared) : OwnLink(std::string(kWay)), shared_(shared) {}
  std::optional<std::string_view> reaches(OpKind, std::uint32_t local_pin,
                                          std::uint32_t remote_pin) const override {
    const auto joins = [&](std::uint32_t object, std::uint32_t host) {
      return shared_.objects.contains(object) && shared_.host.contains(host);
    };
    if (joins(remote_pin, local_pin) || joins(local_pin, remote_pin)) return kWay;
    return std::nullopt;
  }
  void close(core::Completions& out) override {
    if (shared_.mover != nullptr) shared_.mover->close(*this, out);
  }
  std::function<bool()> settling() const override {
    return shared_.mover != nullptr ? shared_.mover->settling() : nullptr;
  }

 private:
  const ObjectState& shared_;
};

class ObjectBackend final : public core::Backend {
 public:
  explicit ObjectBackend(const core::BackendContext& context)
      : poller_(context.poller), storage_(std::make_shared<ObjectStorage>(context.settings)) {
    rails_.push_back(std::make_unique<ObjectRail>(shared_));
  }
  ~ObjectBackend() override {
    if (watched_ != 0) poller_.forget(watched_);
  }
  ObjectBackend(const ObjectBackend&) = delete;
  ObjectBackend& operator=(const ObjectBackend&) = delete;

  const core::Capabilities& can() const override { return can_; }
  std::shared_ptr<core::Storage> storage() override { return storage_; }
  std::span<const std::unique_ptr<core::Rail>> rails() override { return rails_; }
  core::Bytes address() const override { return {}; }
  std::unique_ptr<core::Link> link(core::LinkSeed /*seed*/, core::LinkHost&) override {
    return std::make_unique<ObjectLink>(shared_);
  }
  Result<core::Bytes> pinFor(const core::Audience& /*audience*/, std::uint32_t slot,
                             const Segment& memory) override;
  Status unpin(std::uint32_t slot) override;

 private:
  Status begin();

  base::Poller& poller_;
  const core::Capabilities can_{.name = "object",
                                .memory = {MemoryKind::kHost, MemoryKind::kObject},
                                .own_memory = true,
                                .tcp = true,
                                .preference = 50};
  const std::shared_ptr<ObjectStorage> storage_;
  ObjectState shared_;
  std::vector<std::unique_ptr<core::Rail>> rails_;
  base::Poller::Id watched_ = 0;
};

// Begins with the first object, whose storage has started the mover.
Status ObjectBackend::begin() {
  if (shared_.mover != nullptr) return Ok{};
  ObjectMover* const mover = storage_->mover();
  VIADUCT_TRY(watched_, poller_.watch(mover->eventFd(), EPOLLIN,
                                      [mover](std::uint32_t) { mover->drainEvent(); }));
  shared_.mover = mover;
  return Ok{};
}

// The links of this backend lead only to this agent, so the audience does not matter.
Result<core::Bytes> ObjectBackend::pinFor(const core::Audience& /*audience*/, std::uint32_t slot,
                                          const Segment& memory) {
  if (memory.kind == MemoryKind::kHost) {
    shared_.host.insert(slot);
    return core::Bytes{};
  }
  if (memory.kind != MemoryKind::kObject)
    return Error{.code = Code::kUnsupported,
                 .operation = "pin",
                 .detail = "host memory and objects only",
                 .device = "object"};
  VIADUCT_CHECK(begin());
  shared_.mover->addPin(slot, {.facts = std::static_pointer_cast<const ObjectFacts>(memory.opened),
                               .address = memory.address,
                               .bytes = memory.bytes,
                               .offset = memory.fd_offset});
  shared_.objects.insert(slot);
  return core::Bytes{};
}

Status ObjectBackend::unpin(std::uint32_t slot) {
  Status left = Ok{};
  if (shared_.mover != nullptr) left = shared_.mover->unpin(slot);
  if (!left && left.error().code == Code::kBusy) return left;
  if (shared_.objects.erase(slot) != 0) shared_.mover->dropPin(slot);
  shared_.host.erase(slot);
  return left;
}

}  // namespace

// Opens no connection and loads no library: the first object does.
Result<std::unique_ptr<core::Backend>> open(const core::BackendContext& context) {
  return std::unique_ptr<core::Backend>(std::make_unique<ObjectBackend>(context));
}

std::string libraryVersion() { return base::curlVersion(); }

}  // namespace viaduct::object
