#include "agent/peers/note_rings.h"

#include <algorithm>

#include "agent/peers/peer_impl.h"

namespace viaduct::agent {
namespace {

// A ring without a note during this many sleeps is no longer listed; its eventfd reports the next
// note.
constexpr unsigned kSilentSleeps = 16;

}  // namespace

void NoteRings::add(PeerImpl& peer) {
  const bool known = std::any_of(rings_.begin(), rings_.end(),
                                 [&](const ListedRing& ring) { return ring.peer == &peer; });
  if (!known) rings_.push_back({.peer = &peer});
}

void NoteRings::remove(const PeerImpl& peer) {
  std::erase_if(rings_, [&](const ListedRing& ring) { return ring.peer == &peer; });
}

bool NoteRings::look() {
  bool any = false;
  for (ListedRing& ring : rings_) {
    if (!ring.peer->takeNotes()) continue;
    ring.silent = 0;
    any = true;
  }
  return any;
}

bool NoteRings::allowWakeups() {
  wakeups_suppressed_ = false;
  bool quiet = true;
  std::erase_if(rings_, [&](ListedRing& ring) {
    const auto next = ring.peer->armNoteRing();
    using Next = RingReceiver::Next;
    quiet = quiet && (next == Next::kEmpty || next == Next::kLater);
    return next == Next::kEmpty && ++ring.silent > kSilentSleeps;
  });
  return quiet;
}

void NoteRings::suppressWakeups() {
  if (wakeups_suppressed_ || rings_.empty()) return;
  wakeups_suppressed_ = true;
  for (const ListedRing& ring : rings_) ring.peer->disarmNoteRing();
}

}  // namespace viaduct::agent
