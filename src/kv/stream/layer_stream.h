// One end of a request that moves layer by layer, two or more layers at once, for all four roles.
// The mark of a layer is its index in the list of layers. Threads: call from any.
#pragma once

#include <viaduct/kv_stream.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/attempt.h"

namespace viaduct::kv {

// The part of an end in a stream.
struct Role {
  const char* verb;  // in errors: "push layer 4 of request 7"
  bool moves;        // has the transfers; the other end only has marks
  bool has_marks;    // the other end sends a mark for each layer
};
inline constexpr Role kPush{.verb = "push", .moves = true, .has_marks = false};
inline constexpr Role kArrival{.verb = "wait for", .moves = false, .has_marks = true};
inline constexpr Role kOffer{.verb = "offer", .moves = false, .has_marks = true};
inline constexpr Role kPull{.verb = "read", .moves = true, .has_marks = true};

class LayerStream final : public std::enable_shared_from_this<LayerStream> {
 public:
  static Result<std::shared_ptr<LayerStream>> open(const Role& role, Agent& agent, const Peer& peer,
                                                   std::vector<std::uint32_t> layers,
                                                   KvRequest request);
  // Plans a transfer for each layer.
  Status plan(OpKind kind, Agent& agent, const Peer& peer, const KvLayers& layers,
              std::span<const KvBlocks> blocks);
  // Ends the request if layers are missing, and waits until the transfers of this end have ended.
  void close();

  std::size_t count() const { return layers_.size(); }
  const MarkStream& marks() const { return *marks_; }
  Result<std::uint32_t> indexOf(std::uint32_t layer) const;
  bool has(std::uint32_t layer) const;

  // Queues the transfer of a layer, and posts it once few enough others run. For a layer that was
  // queued before, does nothing, or returns kInvalid if `once`.
  Status post(std::uint32_t index, bool once);
  Status postAll();
  Status mark(std::uint32_t index);  // tells the other end, without a transfer
  Status waitMark(std::uint32_t index, Deadline until) const;
  Status waitMarks(std::uint32_t count, Deadline until) const;
  Status waitRead(std::uint32_t index, Deadline until);
  Status waitPosted(Deadline until);
  void cancel(std::string_view why);
  Status over(Deadline until) const;

 private:
  LayerStream(const Role& role, std::vector<std::uint32_t> layers, KvRequest request)
      : role_(role), layers_(std::move(layers)), request_(std::move(request)) {}
  bool isAsked(std::uint32_t index) const;
  void postQueued();
  void waitChanged(std::unique_lock<std::mutex>& lock, const std::function<bool()>& done,
                   Deadline until);
  Status waitTransfer(std::uint32_t index, Deadline until);
  void changed();
  void ended(std::uint32_t index, const TransferEnd& end);
  void fail(const Error& why);
  void settle();
  std::optional<Error> failure() const;
  bool allDone() const;
  std::string what(const char* verb, std::uint32_t index) const;
  std::string request() const;
  static Error named(Error why, std::string operation);

  const Role role_;
  const std::vector<std::uint32_t> layers_;
  const KvRequest request_;
  std::optional<MarkStream> marks_;
  // The callback of marks_ may run before open() and plan() return.
  std::atomic<bool> opened_{false};
  enum class Layer : std::uint8_t { kIdle, kQueued, kPosted };
  mutable std::mutex mutex_;         // for the members up to failure_, and posting
  std::condition_variable changed_;  // a queued layer was posted, or the request has failed
  std::vector<Layer> layer_states_;
  base::Watchers watchers_;  // beside changed_
  std::deque<std::uint32_t> queue_;
  std::uint64_t running_ = 0, running_bytes_ = 0;
  std::optional<Error> failure_;
  std::vector<Transfer> transfers_;  // fixed once opened_ is set
};

}  // namespace viaduct::kv
