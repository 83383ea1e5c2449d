// The results of planning, which rails carry out.
#pragma once

#include <viaduct/path.h>
#include <viaduct/result.h>
#include <viaduct/transfer.h>

#include <cstdint>
#include <span>
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

// The agent's number for one slice of one post. Ops that a rail refused at first keep the tag of
// their slice. A lost slice keeps its tag too, when it is posted again after all of its ops have
// come back.
using Tag = std::uint64_t;

// The least bytes of a work that writes an object together with others, except the last work.
inline constexpr std::uint64_t kLeastOfWhole = std::uint64_t{8} << 20U;

// A transfer's ops for one rail and one peer. The ops stay in place until every taken one has come
// back, so a rail keeps the span and copies nothing.
struct Work {
  OpKind kind = OpKind::kWrite;
  Tag tag = 0;
  Link* link = nullptr;
  std::span<const Op> ops = {};
  // 0: the work stands alone. Otherwise works with the same number write one object together, which
  // exists once they have covered it. The number is unique in the process.
  std::uint64_t whole = 0;
  // The demands on the path, for backends that choose the path of other transfers. May be null.
  const Requirement* required = nullptr;
};

// `ops` ops of this tag are finished, and visible at the other side.
struct Moved {
  Tag tag = 0;
  std::uint64_t ops = 0;
  std::uint64_t bytes = 0;
  std::uint64_t injected = 0;   // pieces sent inline: the request held the bytes
  std::uint64_t batches = 0;    // doorbells: times that the library was told to begin
  std::uint64_t by_kernel = 0;  // ops that a kernel of a GPU copied
};
// `ops` ops of this tag will never be finished, and nobody touches their memory any more.
struct Failed {
  Tag tag = 0;
  std::uint64_t ops = 0;
  Error why = {};
  // The rail failed, not the work: another rail, or this one later, may repeat it.
  bool rail_lost = false;
};
// A part of this tag's work has passed one stage of a staged path.
struct Staged {
  Tag tag = 0;
  PathShare share = {};
};
using Completion = std::variant<Moved, Failed, Staged>;
using Completions = std::vector<Completion>;
// The number of ops that will not come back again.
inline std::uint64_t endedOps(const Completion& completion) {
  if (const auto* const moved = std::get_if<Moved>(&completion)) return moved->ops;
  if (const auto* const failed = std::get_if<Failed>(&completion)) return failed->ops;
  return 0;
}

}  // namespace viaduct::core
