#include "backends/local/copy_chunk.h"

namespace viaduct::local {

using core::Op;

namespace {

// Linux maps up to 64 KiB of resident pages around a read fault, but a single page at a write
// fault.
constexpr std::uintptr_t kFaultAround = std::uintptr_t{64} << 10U;
// Shorter copies map no pages ahead: a single page would pay for its neighbours
// (docs/measured/local.md).
constexpr std::uint64_t kLeastMapped = std::uint64_t{8} << 10U;

// Reads a byte of each window of kFaultAround, so that the writes that follow find mapped pages.
// The reads cost nothing where pages are mapped already. Without them the first pass takes three
// times as long.
[[gnu::noinline]] void mapPages(const std::byte* at, std::uint64_t bytes) {
  const auto first = reinterpret_cast<std::uintptr_t>(at);
  for (std::uintptr_t next = first; next < first + bytes; next = (next | (kFaultAround - 1)) + 1)
    static_cast<void>(*static_cast<const volatile std::byte*>(pointerTo(next)));
}

}  // namespace

// The registrations of the previous op, because neighbouring ops mostly share them. Inside the
// gate, a registration that was alive stays usable.
struct ChunkCopier::Cursor {
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};
  std::uint64_t local_slot = kNone, remote_slot = kNone;
  const RemoteView* view = nullptr;
};

Fault ChunkCopier::resolve(const CopyWork& task, const Op& op, Cursor& at) const {
  const std::uint64_t here = here_.generation(op.local_pin);
  if (here == 0 || here > task.born) return {Fault::Cause::kWithdrawnHere};
  const RemoteView* view = task.peer->find(op.remote_pin);
  if (view == nullptr || view->born > task.born ||
      task.peer->live().generation(op.remote_pin) != view->generation)
    return {Fault::Cause::kWithdrawnThere};
  at = {op.local_pin, op.remote_pin, view};
  return {};
}

template <bool kMaps>
Fault ChunkCopier::copy(const CopyWork& task, const RemoteView& view, std::uint64_t local,
                        std::uint64_t remote, std::uint64_t bytes) {
  const auto method = view.method(task.kind);
  if (method == RemoteView::Method::kNone) return {Fault::Cause::kWithdrawnThere};
  if (method == RemoteView::Method::kCma) {
    if (batch_.full())
      if (const Fault fault = batch_.flush(task.peer->cma(), task.kind)) return fault;
    batch_.add(local, remote, bytes);
    return {};
  }
  auto* here = static_cast<std::byte*>(pointerTo(local));
  auto* there = static_cast<std::byte*>(pointerTo(remote + view.shift));
  std::byte* to = task.kind == OpKind::kWrite ? there : here;
  const std::byte* from = task.kind == OpKind::kWrite ? here : there;
  // Reading private memory of this process before the write would cost a second fault.
  if (kMaps && bytes >= kLeastMapped && method == RemoteView::Method::kMapped) mapPages(to, bytes);
  copies_.copy(to, from, bytes);
  return {};
}

// `kMaps`: writes may meet pages that are not mapped yet.
template <bool kMaps>
Fault ChunkCopier::walk(const CopyWork& task, const CopyChunk& chunk) {
  Cursor at;
  for (const Op& op : chunk.ops) {
    if (op.local_pin != at.local_slot || op.remote_pin != at.remote_slot)
      if (const Fault fault = resolve(task, op, at)) return fault;
    const RemoteView& view = *at.view;
    const std::uint64_t offset = op.remote - view.address;  // wraps if the op begins earlier
    if (offset > view.bytes || op.bytes > view.bytes - offset) return {Fault::Cause::kOutside};
    const std::uint64_t bytes = chunk.piece ? chunk.bytes : op.bytes;
    if (const Fault fault =
            copy<kMaps>(task, view, op.local + chunk.skip, op.remote + chunk.skip, bytes))
      return fault;
  }
  return batch_.flush(task.peer->cma(), task.kind);
}

Fault ChunkCopier::run(const CopyWork& task, const CopyChunk& chunk) {
  Gate& gate = task.peer->gate();
  const Gate::Pass pass = gate.enter();
  if (!pass) return {Fault::Cause::kFenced};
  if (task.number != task_) copies_.begin(task.strategy, task.bytes);
  task_ = task.number;
  const bool maps = task.bytes >= kLeastMapped && task.kind == OpKind::kWrite && !copies_.plain();
  const Fault fault = maps ? walk<true>(task, chunk) : walk<false>(task, chunk);
  copies_.finish();
  gate.leave(pass);
  return fault;
}

}  // namespace viaduct::local
