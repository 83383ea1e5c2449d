// A planned copy between memory here and at a peer. Threads: call from any.
#pragma once

#include <viaduct/blocks.h>
#include <viaduct/deadline.h>
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

enum class TransferState : std::uint8_t { kIdle, kRunning, kDone, kFailed, kCancelled };
const char* transferStateName(TransferState state);

// How one post ended.
struct TransferEnd {
  TransferState state = TransferState::kIdle;
  std::optional<Error> error = {};
};

struct TransferOptions {
  // What the path must be: "rdma", "same-host", "not-tcp", "backend:NAME", several joined by
  // commas. Enforced when the route is chosen; empty takes the best there is.
  std::string require = {};
  // Runs once per post, on a thread of the agent or on one that polls or waits, or closes the
  // agent; never inside post(). Must not block. It may post again.
  std::function<void(const TransferEnd&)> on_end = {};
};
// Whether this can be a `require`, as plan() would say it: for programs that are told one.
Status checkRequire(std::string_view require);

struct PostOptions {
  std::optional<Deadline> deadline = {};  // none: Settings::deadline from now
  std::span<const std::byte> note = {};   // delivered after the data; copied
  bool with_note = false;                 // sends `note` even when it is empty
};

class Transfer {
 public:
  explicit Transfer(std::shared_ptr<agent::TransferImpl> impl);
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;
  Transfer(Transfer&&) noexcept;
  Transfer& operator=(Transfer&&) noexcept;
  ~Transfer();  // cancels and waits for the end if still running

  // Starts the copy and returns. The memory belongs to the transfer until it has ended. Fails on
  // misuse, a lost peer or withdrawn memory; then nothing was started.
  Status post(const PostOptions& options = {});
  // Moves things along once, without blocking, and says where the transfer is.
  TransferState poll();
  // The same without moving anything. Takes no lock.
  TransferState state() const;
  // Blocks until the end of the post, or `until`: then kTimeout, and the transfer goes on.
  // The post's own failure is the error returned.
  Status wait(Deadline until = Deadline::never());
  // Asks for the end. It comes, as kCancelled (or kDone, if it was sooner), when nobody touches the
  // memory any more: within Settings::grace, also when the peer is frozen.
  void cancel();

  TransferEnd end() const;      // of the last post
  Path path() const;            // of the last post, complete once it has ended
  Path carried() const;         // of all posts that have ended, together
  std::uint64_t bytes() const;  // of one post
  std::uint64_t ops() const;    // after coalescing

 private:
  std::shared_ptr<agent::TransferImpl> impl_;
};

}  // namespace viaduct
