// The C interface: blocks and transfers.
#include <algorithm>
#include <vector>

#include "agent/c/call.h"
#include "agent/c/objects.h"

namespace {

using namespace viaduct;
using namespace viaduct::agent::c;

static_assert(static_cast<int>(OpKind::kWrite) == VIADUCT_WRITE);
static_assert(static_cast<int>(OpKind::kRead) == VIADUCT_READ);
static_assert(static_cast<int>(TransferState::kIdle) == VIADUCT_TRANSFER_IDLE);
static_assert(static_cast<int>(TransferState::kRunning) == VIADUCT_TRANSFER_RUNNING);
static_assert(static_cast<int>(TransferState::kDone) == VIADUCT_TRANSFER_DONE);
static_assert(static_cast<int>(TransferState::kFailed) == VIADUCT_TRANSFER_FAILED);
static_assert(static_cast<int>(TransferState::kCancelled) == VIADUCT_TRANSFER_CANCELLED);

}  // namespace

namespace viaduct::agent::c {

Result<Selection> selectionOf(const char* operation, viaduct_blocks blocks, const uint32_t* indices,
                              uint64_t count) {
  VIADUCT_TRY(const auto known, find<Blocks>(operation, "list of blocks", blocks.id));
  VIADUCT_TRY(const auto numbers, arrayOf(operation, "indices", indices, count));
  // A selection without indices takes all blocks, so an empty list is refused.
  if (indices != nullptr && numbers.empty()) return misuse(operation, "0 indices name no block");
  return Selection{.blocks = *known, .indices = numbers};
}

Result<Priority> priorityOf(const char* operation, int32_t value) {
  switch (value) {
    case VIADUCT_NORMAL:
      return Priority::kNormal;
    case VIADUCT_URGENT:
      return Priority::kUrgent;
    case VIADUCT_BACKGROUND:
      return Priority::kBackground;
    default:
      return misuse(operation, fmt::format("{} is no class of priority", value));
  }
}

}  // namespace viaduct::agent::c

// NOLINTBEGIN(readability-identifier-naming): the names of C
viaduct_code viaduct_blocks_of_runs(const viaduct_run* runs, uint64_t count, viaduct_blocks* blocks,
                                    viaduct_error* error) {
  return call(error, [&]() -> Status {
    VIADUCT_CHECK(need("blocks", "blocks", blocks));
    VIADUCT_TRY(const auto given, arrayOf("blocks", "runs", runs, count));
    std::vector<Run> copied;
    copied.reserve(given.size());
    for (const viaduct_run& run : given)
      copied.push_back(
          {.base = run.base, .stride = run.stride, .bytes = run.bytes, .count = run.count});
    VIADUCT_TRY(auto made, Blocks::of(std::move(copied)));
    give<Blocks>(*blocks, std::move(made));
    return Ok{};
  });
}

viaduct_code viaduct_blocks_of_extents(const viaduct_extent* extents, uint64_t count,
                                       viaduct_blocks* blocks, viaduct_error* error) {
  return call(error, [&]() -> Status {
    VIADUCT_CHECK(need("blocks", "blocks", blocks));
    VIADUCT_TRY(const auto given, arrayOf("blocks", "extents", extents, count));
    std::vector<Extent> copied;
    copied.reserve(given.size());
    for (const viaduct_extent& extent : given)
      copied.push_back({.address = extent.address, .bytes = extent.bytes});
    VIADUCT_TRY(auto made, Blocks::list(copied));
    give<Blocks>(*blocks, std::move(made));
    return Ok{};
  });
}

viaduct_code viaduct_blocks_close(viaduct_blocks blocks, viaduct_error* error) {
  return call(error, [&]() -> Status {
    VIADUCT_CHECK(take<Blocks>("close the blocks", "list of blocks", blocks.id));
    return Ok{};
  });
}

viaduct_code viaduct_transfer_plan(viaduct_agent agent, int32_t kind, viaduct_peer peer,
                                   viaduct_blocks local, const uint32_t* local_indices,
                                   uint64_t local_count, viaduct_blocks remote,
                                   const uint32_t* remote_indices, uint64_t remote_count,
                                   const char* require, int32_t priority,
                                   viaduct_transfer* transfer, viaduct_error* error) {
  return call(error, [&]() -> Status {
    VIADUCT_TRY(const auto open, find<AgentObject>("plan", "agent", agent.id));
    VIADUCT_TRY(const auto known, find<Peer>("plan", "peer", peer.id));
    VIADUCT_CHECK(need("plan", "transfer", transfer));
    if (kind != VIADUCT_WRITE && kind != VIADUCT_READ)
      return misuse("plan", fmt::format("kind {} is neither write nor read", kind));
    VIADUCT_TRY(const auto here, selectionOf("plan", local, local_indices, local_count));
    VIADUCT_TRY(const auto there, selectionOf("plan", remote, remote_indices, remote_count));
    TransferOptions options;
    VIADUCT_TRY(options.priority, priorityOf("plan", priority));
    if (require != nullptr) options.require = require;
    VIADUCT_TRY(auto planned, open->agent.plan(static_cast<OpKind>(kind), *known, here, there,
                                               std::move(options)));
    give<Transfer>(*transfer, std::move(planned));
    return Ok{};
  });
}

viaduct_code viaduct_transfer_post(viaduct_transfer transfer, int64_t deadline_ns, const void* note,
                                   uint64_t note_bytes, viaduct_error* error) {
  return call(error, [&]() -> Status {
    VIADUCT_TRY(const auto planned, find<Transfer>("post", "transfer", transfer.id));
    PostOptions options{.with_note = note != nullptr};
    if (deadline_ns >= 0) options.deadline = until(deadline_ns);
    VIADUCT_TRY(options.note, bytesOf("post", note, note_bytes));
    return planned->post(options);
  });
}

viaduct_code viaduct_transfer_poll(viaduct_transfer transfer, int32_t* state,
                                   viaduct_error* error) {
  return call(error, [&]() -> Status {
    VIADUCT_TRY(const auto planned, find<Transfer>("poll", "transfer", transfer.id));
    VIADUCT_CHECK(need("poll", "state", state));
    *state = static_cast<int32_t>(planned->poll());
    return Ok{};
  });
}

viaduct_code viaduct_transfer_wait(viaduct_transfer transfer, int64_t timeout_ns,
                                   viaduct_error* error) {
  return call(error, [&]() -> Status {
    VIADUCT_TRY(const auto planned, find<Transfer>("wait", "transfer", transfer.id));
    return planned->wait(until(timeout_ns));
  });
}

viaduct_code viaduct_transfer_cancel(viaduct_transfer transfer, viaduct_error* error) {
  return call(error, [&]() -> Status {
    VIADUCT_TRY(const auto planned, find<Transfer>("cancel", "transfer", transfer.id));
    planned->cancel();
    return Ok{};
  });
}

viaduct_code viaduct_transfer_path(viaduct_transfer transfer, char* buffer, uint64_t capacity,
                                   uint64_t* length, viaduct_error* error) {
  return call(error, [&]() -> Status {
    VIADUCT_TRY(const auto planned, find<Transfer>("path", "transfer", transfer.id));
    return copyText("path", planned->path().text(), buffer, capacity, length);
  });
}

viaduct_code viaduct_transfer_landed(viaduct_transfer transfer, uint32_t* numbers,
                                     uint64_t capacity, uint64_t* count, viaduct_error* error) {
  return call(error, [&]() -> Status {
    VIADUCT_TRY(const auto planned, find<Transfer>("landed", "transfer", transfer.id));
    VIADUCT_CHECK(need("landed", "count", count));
    if (capacity != 0) VIADUCT_CHECK(need("landed", "numbers", numbers));
    const Indices landed = planned->end().landed;
    *count = landed.size();
    std::copy_n(landed.begin(), std::min<std::uint64_t>(capacity, landed.size()), numbers);
    return Ok{};
  });
}

viaduct_code viaduct_transfer_close(viaduct_transfer transfer, viaduct_error* error) {
  return call(error, [&]() -> Status {
    VIADUCT_TRY(const auto closing, take<Transfer>("close the transfer", "transfer", transfer.id));
    // Other threads may still wait for the transfer. Then the last of them destroys it.
    closing->cancel();
    static_cast<void>(closing->wait(Deadline::never()));
    return Ok{};
  });
}
// NOLINTEND(readability-identifier-naming)
