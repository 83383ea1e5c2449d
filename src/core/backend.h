// The interface of a backend: a few calls and a table of facts. A new backend is a new folder under
// backends/. Threads: one thread at a time calls a rail. Unless a comment says otherwise, calls on
// a Backend and its Links have the agent's lock, and no thread then calls the backend's rails. A
// backend may have threads of its own, which never call the agent.
// docs/design/0051-rails-run-beside-membership.md
#pragma once

#include <viaduct/backend.h>
#include <viaduct/deadline.h>
#include <viaduct/memory.h>
#include <viaduct/result.h>
#include <viaduct/settings.h>
#include <viaduct/statistics.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/block_sums.h"
#include "base/bytes.h"
#include "base/fd.h"
#include "base/poller.h"
#include "core/op.h"
#include "core/pin_rights.h"

namespace viaduct::core {

using base::Bytes;
using base::Fd;

// The abilities of a backend, as data: the agent chooses routes by them, tests skip by them, and
// tools print them.
struct Capabilities {
  std::string_view name;
  std::vector<MemoryKind> memory;  // kinds it can move from and to
  bool same_host = false;          // copies within this host's memory; no byte crosses a network
  bool own_memory = false;         // links an agent with itself, see LinkSeed::self
  bool rdma = false;
  bool tcp = false;
  bool staged = false;  // moves through host memory of both agents, by other backends
  // Its rails run without the agent's lock, several at once. post(), poll(), collect() and cancel()
  // then never call the agent, not even LinkHost::changed(): they leave that to handleEvents().
  bool side_by_side = false;
  // Checks the rights of each peer to each pin, and takes them back at the end of the session. If
  // false, a peer with limited rights gets no keys, except of pins for its session alone.
  bool checks_rights = false;
  int preference = 0;  // lower is tried first: 10 same host, 20 rdma hardware, 30 tcp, 90 fake
  // The least bytes that pay for one more rail; 0: the agent's default, 16 KiB.
  std::uint64_t min_chunk = 0;
  // A list of ops that average fewer bytes than this is faster if its ops are packed into chunks
  // (docs/measured/packing.md). 0: never.
  std::uint64_t pack_below = 0;
};

// An optional skill of a rail: the posting thread moves small work by itself.
class DirectMover {
 public:
  // The part of a work that is done. A later call continues there.
  struct Progress {
    std::uint64_t next = 0;   // the place of the next piece, in the mover's own terms
    std::uint64_t bytes = 0;  // moved so far
  };
  enum class Outcome : std::uint8_t {
    kMoved,   // all ops are moved
    kPaused,  // the caller has to leave its section (move/sections.h), then may continue
    kFailed,  // Rail::post() has to repeat the whole work, and then reports why it fails
  };
  virtual ~DirectMover() = default;
  // Whether ops are few and small enough for moveNow().
  virtual bool fits(std::span<const Op> ops) const = 0;
  // Moves the ops within the call; poll() reports nothing of them. Pauses within some tens of
  // microseconds after `pause` becomes true. On return nobody touches the memory for this work.
  // Threads: several at once, also of one link, and during calls on the rail; none while links or
  // pins change.
  virtual Outcome moveNow(const Work& work, Progress& so_far, const std::atomic<bool>& pause) = 0;
};

// One NIC, queue or socket group.
class Rail {
 public:
  virtual ~Rail() = default;
  virtual std::string_view name() const = 0;

  // Takes ops from the front of `work.ops` and returns their number. Fewer than all means busy:
  // offer the rest after poll(). A taken op comes back exactly once, in a Moved or a Failed, from
  // poll(), collect() or Link::close. Small work may be done inside the call, and large work is
  // left for poll(): a post takes microseconds.
  virtual std::size_t post(const Work& work) = 0;

  // Makes progress for a bounded time (about a millisecond), and appends what ended. Never blocks.
  virtual void poll(Completions& out) = 0;

  // True: poll() has found events that concern more than this rail, such as a broken connection.
  // The rail is busy until they are handled.
  virtual bool hasEvents() const { return false; }
  // Handles the events that poll() has found, and appends what ended. Threads: as calls on the
  // backend.
  virtual void handleEvents(Completions& /*out*/) {}

  // Stops all works of this sink. Every taken op still comes back soon, but only when nobody
  // touches its memory any more, here and at the peer.
  virtual void cancel(const Sink& sink) = 0;

  // True while only poll() makes progress. False while nothing is in flight, or while a watched fd
  // or timer will wake the agent. The agent does not sleep while a rail is busy.
  virtual bool busy() const = 0;

  // Called right after post(): appends the posted ops that have ended, and may go on with the
  // others for some tens of microseconds.
  virtual void collect(Completions& /*out*/) {}

  // Null: the rail is no DirectMover.
  virtual DirectMover* direct() { return nullptr; }

  // Another thread wants the rail, so poll() returns soon. Threads: any.
  std::atomic<bool> wanted{false};
};

// Polls a rail and handles its events, for a caller that holds the agent's lock.
inline void pollAndHandle(Rail& rail, Completions& out) {
  rail.poll(out);
  if (rail.hasEvents()) rail.handleEvents(out);
}

// The services that the agent gives one link.
class LinkHost {
 public:
  virtual ~LinkHost() = default;
  // Sends to the same backend's link at the peer, in order. Fds pass only if
  // `LinkSeed::unix_socket`.
  virtual Status send(std::span<const std::byte> message, std::span<const int> fds = {}) = 0;
  // Tells the agent that the link's state() has changed.
  virtual void changed() = 0;
};

// The facts from which a backend starts to reach a peer. For a link of an agent to itself there are
// no `key` and no `pid`.
struct LinkSeed {
  std::string peer = {};      // the peer's name, for texts
  std::uint64_t epoch = 0;    // number of the session; the same at both ends
  bool dialer = false;        // this end opened the session
  bool same_process = false;  // both agents live in this process
  // The peer is this agent. The link is both ends: it is ready at once, and sends no message. Only
  // backends with Capabilities::own_memory get such a link.
  bool self = false;
  bool same_host = false;                 // proven by a Unix socket or a shared process
  bool unix_socket = false;               // fds can be sent
  int pid = 0;                            // the peer's process in this PID namespace; 0: unseen
  Bytes address;                          // Backend::address() of the peer's backend
  std::array<std::uint8_t, 32> key = {};  // a secret that only the two ends of this session know
  // The peer's rights to the pins here, while the link lives. A backend checks them before it
  // serves the peer.
  std::shared_ptr<const PinRights> rights = std::make_shared<PinRights>();
};

// The state of a link, as the link reports it.
struct LinkState {
  enum class Phase : std::uint8_t { kOpening, kReady, kUnusable } phase = Phase::kOpening;
  std::string text = {};  // ready: the ways, "mapped, cma"; unusable: the reason
  // This end lacked descriptors or memory for the link or a part of it; a later session may have
  // them.
  bool exhausted = false;
  // The peer has sent a message that no honest peer sends, so the session ends.
  bool broken_rule = false;
};

// A pin of the peer, with its key for this backend.
struct RemotePin {
  PinInfo info;
  Bytes key;  // result of the peer's Backend::pin
};

// One backend's connection to one peer, for one session.
class Link {
 public:
  virtual ~Link() = default;  // close() has been called before
  virtual LinkState state() const = 0;
  // Handles a message from the peer's link of the same backend.
  virtual void receive(std::span<const std::byte> message, std::vector<Fd> fds) = 0;
  virtual void addPin(const RemotePin& pin) = 0;
  virtual void dropPin(std::uint32_t slot) = 0;
  // The way that ops between these two pins take now ("mapped"), or nothing if there is none.
  virtual std::optional<std::string_view> reaches(OpKind kind, std::uint32_t local_pin,
                                                  std::uint32_t remote_pin) const = 0;
  // Whether nobody but the two agents can read the bytes of ops: no network carries them, or they
  // are encrypted.
  virtual bool isPrivate() const { return false; }
  // The protection that the backend gives to the bytes of ops. Nothing: it gives none, or no
  // network carries them.
  virtual std::optional<Privacy> protection() const { return std::nullopt; }
  // Whether this rail can reach this peer now: the ends may differ in their number of rails, and a
  // rail may be down. The agent asks before it posts ops; no call reports a change. Threads: with
  // the agent's lock held, also while rails run.
  virtual bool servedBy(const Rail& rail) const = 0;
  // Ends everything at once. On return nobody here touches memory for this link, and all of its ops
  // are in `out`. The peer may still touch memory until settled().
  virtual void close(Completions& out) = 0;
  // Returns a function that is true once a peer that was stopped inside a one-sided copy can no
  // longer change memory here: unpinned memory, or after close() any memory. The function outlives
  // the link and its backend. An empty function means that no peer can.
  virtual std::function<bool()> settling() const { return {}; }
  bool settled() const {
    const auto ask = settling();
    return !ask || ask();
  }
};

// A set of a backend's rails: bit i is rail i. A backend that may return anything but kAllRails has
// at most 64 rails.
using RailMask = std::uint64_t;
inline constexpr RailMask kAllRails = ~RailMask{0};

// An optional skill of a backend that sets BackendFacts::storage: its segments are files or
// objects. Threads: several at once, without the agent's lock, also after the backend's end.
class Storage {
 public:
  virtual ~Storage() = default;
  // Finds or makes what `segment` names. Returns the segment with its kind, size and access, and
  // with the backend's knowledge in Segment::opened. May block. pin() gets the result.
  virtual Result<Segment> open(Segment segment) = 0;
  // Says that no further work with this Work::whole comes. An incomplete object is aborted. The
  // agent calls it for each number that it used, also after success.
  virtual void giveUp(std::uint64_t /*whole*/) {}
};

// A piece of a block in memory of a GPU, at `offset` of its block: a multiple of 8.
struct BlockPiece {
  std::uint64_t address = 0, bytes = 0, offset = 0;
};

// Sums of pieces that a GPU computes. The GPU reads the pieces' memory until the end of this
// object. Threads: one at a time.
class PendingSums {
 public:
  virtual ~PendingSums() = default;
  // Waits for the GPU. Returns the sums of each piece, once.
  virtual Result<std::vector<base::BlockSums>> wait() = 0;
};

// An optional skill of a backend: its segments are memory of GPUs. Threads: several at once,
// without the agent's lock, also after the backend's end.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  // Checks that all of `memory` is memory of one GPU. Returns the segment with its device. May
  // block, because the first call loads the driver. pin() gets the result.
  virtual Result<Segment> open(Segment memory) = 0;
  // Allocates memory of that GPU. Segment::opened owns it.
  virtual Result<Segment> allocate(std::uint32_t device, std::uint64_t bytes) = 0;
  // Starts the sums of these pieces, which lie in memory of that GPU.
  virtual Result<std::unique_ptr<PendingSums>> startSums(std::uint32_t device,
                                                         std::span<const BlockPiece> pieces) = 0;
  // The number of bytes whose sums take about 0.1 ms.
  virtual Result<std::uint64_t> sumsAtOnce(std::uint32_t device) = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual const Capabilities& can() const = 0;
  // Null: the backend reaches no memory of GPUs.
  virtual std::shared_ptr<DeviceMemory> deviceMemory() { return nullptr; }
  // Null: the backend has no storage. A backend with storage gets links only to its own agent
  // (Capabilities::own_memory).
  virtual std::shared_ptr<Storage> storage() { return nullptr; }
  virtual std::span<const std::unique_ptr<Rail>> rails() = 0;
  // The figures of each rail's sockets, in the order of rails(). Empty: it has no TCP sockets of
  // its own. Threads: with the agent's lock held, also while rails run.
  virtual std::vector<SocketStatistics> sockets() const { return {}; }
  // The library and device in use: "UCX 1.13.1 over tcp/eth0". Empty: there is no choice to report.
  virtual std::string_view description() const { return {}; }

  // The bytes that a peer's backend of the same name needs to reach this one. Only peers that
  // proved to know the secret get them.
  virtual Bytes address() const = 0;
  // Starts to reach a peer. If the peer cannot be reached, the link's state says so; it is no
  // error.
  virtual std::unique_ptr<Link> link(LinkSeed seed, LinkHost& host) = 0;

  // Registers memory under a slot of the agent's table. Returns the key with which peers reach it;
  // empty if they cannot reach it this way. Only links of `audience` may learn anything of the pin,
  // and only their peers' ops may touch it: a peer may name any slot, address and key.
  virtual Result<Bytes> pinFor(const Audience& audience, std::uint32_t slot,
                               const Segment& memory) = 0;
  Result<Bytes> pin(std::uint32_t slot, const Segment& memory) {
    return pinFor(Audience::everybody(), slot, memory);
  }
  // After the first call no op of this backend begins to touch the memory, here or at a peer. Ops
  // in flight on it fail. Ok: nobody touches it any more. kBusy: a peer is in the middle of a
  // one-sided copy, or a device here still uses it. Call again: the result changes within
  // Settings::grace, or as long as a device makes progress. kPeerLost: the peer or the device still
  // uses it, and the slot is free nevertheless; see Link::settling().
  virtual Status unpin(std::uint32_t slot) = 0;
  // The rails nearest to this pinned memory. Its transfers use other rails only while none of these
  // is usable. Asked when a transfer is planned; the answer stays the same while the memory is
  // pinned.
  virtual RailMask near(std::uint32_t /*slot*/) const { return kAllRails; }
  // Ends all work. The agent calls it when all links are closed, before it destroys the backend.
  // Returns a function as Link::settling() does, for devices of this host.
  virtual std::function<bool()> close() { return {}; }
};

struct BackendContext {
  const Settings& settings;
  base::Poller& poller;  // the agent's, whose handlers run under its lock
  Clock::time_point until = Clock::time_point::max();  // host names have to be resolved by then
};

using BackendFactory = Result<std::unique_ptr<Backend>> (*)(const BackendContext& context);
struct BackendEntry {
  std::string_view name;
  BackendFactory open;
  // The name of the library that it loads, "UCX 1.13.1", or why that does not load; null: it loads
  // none.
  std::string (*library)() = nullptr;
  const BackendFacts* facts = nullptr;
};
// Every backend built in, by name; generated from src/backends/*/CMakeLists.txt.
std::span<const BackendEntry> backendCatalogue();
// The backends that this build has left out, each with the reason.
struct AbsentBackend {
  std::string_view name, why;
};
std::span<const AbsentBackend> absentBackends();

}  // namespace viaduct::core
