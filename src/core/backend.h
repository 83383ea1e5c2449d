// What a backend is: a few verbs and a table of facts. A new one is a new folder under backends/.
// Threads: every call on a Backend, Link or Rail is made with the agent's lock held exclusively, by
// one thread at a time, but for Rail::poll() of a backend that is side_by_side, and DirectMover; a
// backend may have threads of its own, which never call out.
#pragma once

#include <viaduct/deadline.h>
#include <viaduct/memory.h>
#include <viaduct/result.h>
#include <viaduct/settings.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/poller.h"
#include "core/op.h"

namespace viaduct::core {

using base::Bytes;
using base::Fd;

// What a backend can do, as data: routes are chosen on it, tests skip on it, tools print it.
struct Capabilities {
  std::string_view name;
  std::vector<MemoryKind> memory;  // kinds it can move from and to
  bool same_host = false;          // moves by this host's memory alone; no network sees the bytes
  bool rdma = false;
  bool tcp = false;
  // Several threads may poll its rails at once, each another one, while no call of Backend or Link
  // changes anything. poll() then calls nobody: not LinkHost::changed() either.
  bool side_by_side = false;
  int preference = 0;  // lower is tried first: 10 same host, 20 rdma hardware, 30 tcp, 90 fake
  // Less than this is not worth a rail of its own; 0: as the agent thinks, 16 KiB.
  std::uint64_t min_chunk = 0;
};

// An optional skill of a rail: the posting thread moves small work by itself.
class DirectMover {
 public:
  virtual ~DirectMover() = default;
  // Moves all ops within the call and returns their bytes; poll() reports nothing of them. Empty:
  // the work is too large or has failed, and post() has to do all of it. Threads:
  // several at once, also of one link, and during Rail::poll(); none while links or pins change.
  virtual std::optional<std::uint64_t> moveNow(const Work& work) = 0;
};

// One NIC, queue or socket group.
class Rail {
 public:
  virtual ~Rail() = default;
  virtual std::string_view name() const = 0;

  // Takes ops from the front of `work.ops` and says how many; fewer means busy: offer the rest
  // after poll(). A taken op comes back from poll() (or from Link::close) exactly once, in a Moved
  // or a Failed. Small work may be done inside the call; its Moved still comes from poll().
  virtual std::size_t post(const Work& work) = 0;

  // Moves things along for a bounded time (about a millisecond); appends what ended. Never blocks.
  virtual void poll(Completions& out) = 0;

  // Stops working on `tag`. Every op taken and not yet back still comes back, soon, and only when
  // its memory is let go of, here and at the peer.
  virtual void cancel(Tag tag) = 0;

  // True while only poll() makes progress; false while nothing is in flight or a watched fd or
  // timer will call. The agent does not sleep while a rail is busy.
  virtual bool busy() const = 0;

  // Whether poll() is worth its price right after post(): work may be over that was done within.
  virtual bool mayHaveEnded() const = 0;

  // Null: the rail is no DirectMover.
  virtual DirectMover* direct() { return nullptr; }
};

// What the agent does for one link.
class LinkHost {
 public:
  virtual ~LinkHost() = default;
  // To the same backend's link at the peer, in order. Fds only pass where `LinkSeed::unix_socket`.
  virtual Status send(std::span<const std::byte> message, std::span<const int> fds = {}) = 0;
  // The link's state() has changed.
  virtual void changed() = 0;
};

// What a backend is told about a peer when it is to reach it.
struct LinkSeed {
  std::string peer;                       // its name, for messages
  std::uint64_t epoch = 0;                // which life of the session; the same at both ends
  bool dialer = false;                    // true at the end that opened the session
  bool same_process = false;              // both agents live in this process
  bool same_host = false;                 // proven: the session is a Unix socket, or the process
  bool unix_socket = false;               // fds can be sent
  int pid = 0;                            // the peer's, as this PID namespace sees it; 0: unseen
  Bytes address;                          // Backend::address() of the peer's backend
  std::array<std::uint8_t, 32> key = {};  // a secret that only the two ends of this life know
};

// What a link says of itself.
struct LinkState {
  enum class Phase : std::uint8_t { kOpening, kReady, kUnusable } phase = Phase::kOpening;
  std::string text = {};  // ready: the ways, "mapped, cma"; unusable: why
  // This end lacked descriptors or memory to open it, or all of it: a later session may have them.
  bool exhausted = false;
};

// What a peer has pinned, with what its backend says of it.
struct RemotePin {
  PinInfo info;
  Bytes key;  // what the peer's Backend::pin returned
};

// One backend's way to one life of one peer.
class Link {
 public:
  virtual ~Link() = default;  // close() was called before
  virtual LinkState state() const = 0;
  // The peer's same-named link sent this.
  virtual void receive(std::span<const std::byte> message, std::vector<Fd> fds) = 0;
  virtual void addPin(const RemotePin& pin) = 0;
  virtual void dropPin(std::uint32_t slot) = 0;
  // Whether ops between these two can go this way now: the way's name ("mapped"), or nothing.
  virtual std::optional<std::string_view> reaches(OpKind kind, std::uint32_t local_pin,
                                                  std::uint32_t remote_pin) const = 0;
  // Whether this rail has a way to this peer now: ends may differ in their number of rails, and a
  // rail may be out. Asked before ops are posted; no call tells of a change.
  virtual bool servedBy(const Rail& rail) const = 0;
  // Ends everything at once: on return nobody here touches memory for this link, and all of its
  // ops are in `out`. What the peer can still do is what settled() says.
  virtual void close(Completions& out) = 0;
  // Asks whether the peer, stopped in the middle of a one-sided copy, can no longer change memory
  // here that was unpinned; after close(), any memory here. The question outlives the link and its
  // backend. Empty: it never can.
  virtual std::function<bool()> settling() const { return {}; }
  bool settled() const {
    const auto ask = settling();
    return !ask || ask();
  }
};

// Some of a backend's rails: bit i stands for the one at place i. It has 64 at most that does not
// always say all.
using RailMask = std::uint64_t;
inline constexpr RailMask kAllRails = ~RailMask{0};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual const Capabilities& can() const = 0;
  virtual std::span<const std::unique_ptr<Rail>> rails() = 0;
  // What is in force: "UCX 1.13.1 over tcp/eth0". Empty: it has nothing to choose.
  virtual std::string_view description() const { return {}; }

  // What a peer's same-named backend needs to know to reach this one. Goes to peers that have
  // proved that they are invited.
  virtual Bytes address() const = 0;
  // Starts to reach a peer. An unusable way is a link whose state says so, not an error.
  virtual std::unique_ptr<Link> link(LinkSeed seed, LinkHost& host) = 0;

  // Registers memory under a slot of the agent's table. Gives what peers need to reach it: empty
  // when they can not reach it this way.
  virtual Result<Bytes> pin(std::uint32_t slot, const Segment& memory) = 0;
  // From the first call on no op through this backend begins to touch the memory, here or at a
  // peer, and ops in flight on it fail. Ok: nobody touches it any more. kBusy: a peer is in the
  // middle of a one-sided copy; call again until it is something else, within Settings::grace.
  // kPeerLost: the peer is still in there, and the slot is free nevertheless; see Link::settling().
  virtual Status unpin(std::uint32_t slot) = 0;
  // Its rails that are nearest to this pinned memory, which transfers of it use while they serve.
  // Asked when a transfer is planned; the same as long as the memory is pinned.
  virtual RailMask near(std::uint32_t /*slot*/) const { return kAllRails; }
};

struct BackendContext {
  const Settings& settings;
  base::Poller& poller;  // the agent's: fds and timers that call back under its lock
  Clock::time_point until = Clock::time_point::max();  // host names have to be found by then
};

using BackendFactory = Result<std::unique_ptr<Backend>> (*)(const BackendContext& context);
struct BackendEntry {
  std::string_view name;
  BackendFactory open;
  // The library that it loads, "UCX 1.13.1", or why that does not load; null: it loads none.
  std::string (*library)() = nullptr;
};
// Every backend built in, by name; generated from src/backends/*/CMakeLists.txt.
std::span<const BackendEntry> backendCatalogue();
// Those that this build has left out.
struct AbsentBackend {
  std::string_view name, why;
};
std::span<const AbsentBackend> absentBackends();

}  // namespace viaduct::core
