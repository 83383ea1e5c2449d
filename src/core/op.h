// The results of planning, which rails carry out.
#pragma once

#include <viaduct/path.h>
#include <viaduct/result.h>
#include <viaduct/transfer.h>

#include <compare>
#include <cstdint>
#include <span>
#include <utility>
#include <variant>
#include <vector>

namespace viaduct::core {

class Link;
struct Requirement;

// One contiguous copy. Pins are named by their slot in their owner's table.
struct Op {
  std::uint64_t local = 0;
  std::uint64_t remote = 0;
  std::uint64_t bytes = 0;
  std::uint32_t local_pin = 0;
  std::uint32_t remote_pin = 0;
  friend bool operator==(const Op&, const Op&) = default;
};

class Sink;

// The slice of a post that a work belongs to. Ops that a rail refused at first keep the slice's
// name, and so does a lost slice that is posted again.
struct SliceOf {
  Sink* sink = nullptr;  // gets the slice's completions
  std::uint32_t number = 0;
  friend auto operator<=>(const SliceOf&, const SliceOf&) = default;
};

// The least bytes of a work that writes an object together with other works, except the last work.
inline constexpr std::uint64_t kLeastOfWhole = std::uint64_t{8} << 20U;

// A transfer's ops for one rail and one peer. The ops stay in place until every taken one has come
// back, so a rail keeps the span and copies nothing.
struct Work {
  OpKind kind = OpKind::kWrite;
  SliceOf slice = {};
  Link* link = nullptr;
  std::span<const Op> ops = {};
  Priority priority = Priority::kNormal;
  // 0: the work stands alone. Otherwise works with the same number write one object together, which
  // exists once they have covered it. The number is unique in the process.
  std::uint64_t whole = 0;
  // The transfer's demands on its path, for a backend that moves the bytes by other backends. May
  // be null.
  const Requirement* required = nullptr;
};

// `ops` ops of this slice are finished, and visible at the other side.
struct Moved {
  SliceOf slice = {};
  std::uint64_t ops = 0;
  std::uint64_t bytes = 0;
  std::uint64_t injected = 0;   // pieces sent inline: the request held the bytes
  std::uint64_t batches = 0;    // doorbells: times that the library was told to begin
  std::uint64_t by_kernel = 0;  // ops that a kernel of a GPU copied
};
// `ops` ops of this slice will never be finished, and nobody touches their memory any more.
struct Failed {
  SliceOf slice = {};
  std::uint64_t ops = 0;
  Error why = {};
  // The rail failed, not the work: another rail, or this one later, may repeat it.
  bool rail_lost = false;
};
// A part of this slice's work has passed one stage of a staged path.
struct Staged {
  SliceOf slice = {};
  PathShare share = {};
};
using Completion = std::variant<Moved, Failed, Staged>;
using Completions = std::vector<Completion>;

// The receiver of completions. It outlives every work that names it: each op that a rail has taken
// comes back to it exactly once. After the last of these ops, no rail keeps a pointer to it.
// Threads: with the agent's lock held.
class Sink {
 public:
  Sink() = default;
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;
  virtual void moved(const Moved& moved) = 0;
  virtual void failed(Failed failed) = 0;
  virtual void staged(Staged staged) = 0;

 protected:
  ~Sink() = default;
};

// Hands a completion to its sink.
inline void deliver(Completion&& completion) {
  if (const auto* const moved = std::get_if<Moved>(&completion))
    moved->slice.sink->moved(*moved);
  else if (auto* const failed = std::get_if<Failed>(&completion))
    failed->slice.sink->failed(std::move(*failed));
  else if (auto* const staged = std::get_if<Staged>(&completion))
    staged->slice.sink->staged(std::move(*staged));
}
// The number of ops that will not come back again.
inline std::uint64_t endedOps(const Completion& completion) {
  if (const auto* const moved = std::get_if<Moved>(&completion)) return moved->ops;
  if (const auto* const failed = std::get_if<Failed>(&completion)) return failed->ops;
  return 0;
}

}  // namespace viaduct::core
