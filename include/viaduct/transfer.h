// A planned copy between memory here and at a peer. Threads: call from any.
#pragma once

#include <viaduct/blocks.h>
#include <viaduct/deadline.h>
#include <viaduct/digest.h>
#include <viaduct/mark_stream.h>
#include <viaduct/path.h>
#include <viaduct/result.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace viaduct {

namespace agent {
class TransferImpl;
}

enum class OpKind : std::uint8_t { kWrite, kRead };
const char* opKindName(OpKind kind);

// The class of a transfer. If transfers wait for the same rail, those of a higher class go first,
// and a lower class gets a twentieth of the bytes or more. docs/priority.md
enum class Priority : std::uint8_t {
  kUrgent,      // a request waits for it: a hand-off from prefill to decode, a prefix
  kNormal,      //
  kBackground,  // nobody waits: prefetches, offloads, weights of the next version
};
inline constexpr std::size_t kPriorities = 3;
const char* priorityName(Priority priority);  // "urgent", "normal", "background"

enum class TransferState : std::uint8_t { kIdle, kRunning, kDone, kFailed, kCancelled };
const char* transferStateName(TransferState state);

// The result of one post.
struct TransferEnd {
  TransferState state = TransferState::kIdle;
  std::optional<Error> error = {};
  // kCorrupt: the numbers of the blocks of the local selection whose digests are wrong.
  Indices corrupt = {};
  // Failed or cancelled: the numbers of the blocks of the local selection whose bytes are certainly
  // all there. The other blocks are unknown: a part of their bytes may have been written. A caller
  // that tries again moves only the unknown blocks. docs/failure.md
  Indices landed = {};
};

struct TransferOptions {
  // The properties that the path must have: "rdma", "same-host", "not-tcp", "no-staging", "packed",
  // "encrypted" (docs/security.md), "backend:NAME", or several joined by commas. The choice of the
  // route obeys it. Empty: the best available route.
  std::string require = {};
  Priority priority = Priority::kNormal;
  // The peer may still be connecting. A post then waits for it in the background, at most until
  // this time, and moves the bytes as soon as the peer is ready. A post that ends without having
  // reached the peer fails with the reason. Such a post takes no digests.
  std::optional<Deadline> reach = {};
  // With `reach`: the first post also waits until the peer has announced a pin whose label this
  // function accepts. Pins that the peer has withdrawn since count as well. The post fails with
  // kDenied if no such pin is announced in time. The function runs under the agent's lock, and must
  // not call the agent.
  std::function<bool(std::string_view label)> awaits = {};
  // Runs once per post, on a thread of the agent or one that polls, waits or closes the agent;
  // never inside post(). It must not block. It may post again.
  std::function<void(const TransferEnd&)> on_end = {};
};
// Checks a `require` as plan() would, for programs that get it from their user.
Status checkRequire(std::string_view require);

struct PostOptions {
  std::optional<Deadline> deadline = {};  // none: Settings::deadline from now
  std::span<const std::byte> note = {};   // delivered after the data; copied
  bool with_note = false;                 // sends `note` even if it is empty
  // Only for reads: one digest for each block of the local selection, in its order; copied. Once
  // all bytes have arrived, the blocks are checked. The post fails with kCorrupt if one has other
  // bytes, and sends no note then. docs/digests.md
  std::span<const Digest> digests = {};
  std::optional<Mark> mark = {};  // reaches the peer's MarkStream after the data
};

class Transfer {
 public:
  explicit Transfer(std::shared_ptr<agent::TransferImpl> impl);
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;
  Transfer(Transfer&&) noexcept;
  Transfer& operator=(Transfer&&) noexcept;
  ~Transfer();  // cancels and waits for the end if still running

  // Starts the copy and returns. The memory belongs to the transfer until it has ended. On misuse,
  // a lost peer, withdrawn memory, or a note, mark or digests that cannot be right, it is refused
  // with an error. A refused post has moved no byte and leaves the transfer as it was. Once bytes
  // move, post() succeeds, and end() and wait() report a failure.
  Status post(const PostOptions& options = {});
  // Makes progress once, without blocking, and returns the transfer's state.
  TransferState poll();
  // Returns the state without making progress. Takes no lock.
  TransferState state() const;
  // Blocks until the post ends, and returns its error if it failed. Returns kTimeout at `until`;
  // then the transfer goes on.
  Status wait(Deadline until = Deadline::never());
  // Asks the post to end. It ends as kCancelled (or as kDone or kFailed, if that came first) once
  // nobody touches the memory any more: within Settings::grace, even if the peer is frozen.
  void cancel();

  TransferEnd end() const;      // of the last post
  Path path() const;            // of the last post, complete once it has ended
  Path carried() const;         // of all posts that have ended, together
  std::uint64_t bytes() const;  // per post
  std::uint64_t ops() const;    // per post, after coalescing

 private:
  std::shared_ptr<agent::TransferImpl> impl_;
};

}  // namespace viaduct
