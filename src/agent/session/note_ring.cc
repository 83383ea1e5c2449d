#include "agent/session/note_ring.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <utility>

namespace viaduct::agent {
namespace {

using NoteHeader = RingPage::NoteHeader;

// The bytes of the ring that a note of `bytes` bytes takes.
constexpr std::uint64_t room(std::uint64_t bytes) {
  return (sizeof(NoteHeader) + bytes + RingPage::kStep - 1) / RingPage::kStep * RingPage::kStep;
}

// Calls `copy` for the bytes of the ring from `position` on, in one or two pieces.
template <class Copy>
void pieces(std::uint64_t position, std::size_t bytes, Copy copy) {
  const std::size_t at = position % RingPage::kBytes;
  const std::size_t first = std::min(bytes, RingPage::kBytes - at);
  if (first > 0) copy(at, std::size_t{0}, first);
  if (bytes > first) copy(std::size_t{0}, first, bytes - first);
}

void copyIn(RingPage& page, std::uint64_t position, const void* from, std::size_t bytes) {
  pieces(position, bytes, [&](std::size_t at, std::size_t done, std::size_t n) {
    std::memcpy(&page.data[at], static_cast<const std::byte*>(from) + done, n);
  });
}

void copyOut(const RingPage& page, std::uint64_t position, void* into, std::size_t bytes) {
  pieces(position, bytes, [&](std::size_t at, std::size_t done, std::size_t n) {
    std::memcpy(static_cast<std::byte*>(into) + done, &page.data[at], n);
  });
}

// Only an eventfd is accepted, because a write to another descriptor could block or raise SIGPIPE.
bool isEventFd(int fd) {
  std::array<char, 64> kind{};
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t length = ::readlink(link.c_str(), kind.data(), kind.size());
  return length > 0 &&
         std::string_view(kind.data(), static_cast<std::size_t>(length)) == "anon_inode:[eventfd]";
}

}  // namespace

RingReceiver::RingReceiver(base::SharedMemory memory, base::Fd bell)
    : memory_(std::move(memory)), order_(memory_.fd()), bell_(std::move(bell)) {}

Result<RingReceiver> RingReceiver::make() {
  VIADUCT_TRY(auto memory, base::SharedMemory::allocate(sizeof(RingPage)));
  VIADUCT_TRY(const auto access, base::SharedMemory::accessOfPeers(memory.fd()));
  if (access != base::SharedMemory::Access::kReadWrite)
    return Error{.code = Code::kUnsupported,
                 .operation = "note ring",
                 .detail = "a peer could take away its page where vm.overcommit_memory is 2"};
  base::Fd bell(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!bell) return systemError(Code::kExhausted, "eventfd", errno);
  new (memory.data()) RingPage;  // does not touch the data: unused pages cost nothing
  return RingReceiver(std::move(memory), std::move(bell));
}

// In Next, the kinds of entries come first, in the order of EntryKind.
static_assert(static_cast<int>(RingReceiver::Next::kNote) ==
                  static_cast<int>(RingPage::EntryKind::kNote) &&
              static_cast<int>(RingReceiver::Next::kMark) ==
                  static_cast<int>(RingPage::EntryKind::kMark) &&
              static_cast<int>(RingReceiver::Next::kParcel) ==
                  static_cast<int>(RingPage::EntryKind::kParcel) &&
              RingReceiver::Next::kEmpty > RingReceiver::Next::kParcel);

RingReceiver::Next RingReceiver::look(std::uint64_t frames, NoteHeader& entry) const {
  const std::uint64_t there = page().written.load() - taken_;
  if (there == 0) return Next::kEmpty;
  if (there > RingPage::kBytes || there < sizeof(NoteHeader)) return Next::kBroken;
  // A copy, which the peer cannot change between check and use.
  copyOut(page(), taken_, &entry, sizeof entry);
  if (entry.bytes > kMaxRingNote || room(entry.bytes) > there) return Next::kBroken;
  if (entry.kind > RingPage::EntryKind::kParcel) return Next::kBroken;
  if (entry.frames > frames) return Next::kLater;
  return static_cast<Next>(entry.kind);
}

RingReceiver::Next RingReceiver::look(std::uint64_t frames) const {
  NoteHeader entry;
  return look(frames, entry);
}

RingReceiver::Next RingReceiver::take(std::uint64_t frames, base::Bytes& note) {
  NoteHeader entry;
  const Next next = look(frames, entry);
  if (next > Next::kParcel) return next;
  order_.acquire();
  note.resize(entry.bytes);
  copyOut(page(), taken_ + sizeof entry, note.data(), note.size());
  taken_ += room(entry.bytes);
  page().taken.store(taken_, std::memory_order_release);
  return next;
}

RingSender::RingSender(base::SharedMemory memory, base::SharedOrder order, base::Fd bell)
    : memory_(std::move(memory)), order_(order), bell_(std::move(bell)) {}

Result<RingSender> RingSender::map(const base::Fd& page, base::Fd bell) {
  VIADUCT_TRY(auto memory, base::SharedMemory::map(page, sizeof(RingPage),
                                                   base::SharedMemory::Access::kReadWrite));
  const int flags = ::fcntl(bell.get(), F_GETFL);
  if (!isEventFd(bell.get()) || flags < 0 || (flags & O_NONBLOCK) == 0)
    return Error{.code = Code::kProtocol,
                 .operation = "note ring",
                 .detail = "the ring's descriptor is not a non-blocking eventfd"};
  return RingSender(std::move(memory), base::SharedOrder(page.get()), std::move(bell));
}

bool RingSender::hasRoom(std::uint64_t bytes) {
  if (bytes <= RingPage::kBytes - (written_ - taken_)) return true;
  const std::uint64_t taken = page().taken.load(std::memory_order_acquire);
  // The receiver's count must neither fall nor exceed the written bytes. If it does, the peer wrote
  // nonsense, so no room is assumed.
  if (taken - taken_ > written_ - taken_) return false;
  taken_ = taken;
  return bytes <= RingPage::kBytes - (written_ - taken_);
}

bool RingSender::put(std::uint64_t frames, std::span<const std::byte> note,
                     RingPage::EntryKind kind) {
  if (note.size() > kMaxRingNote || !hasRoom(room(note.size()))) return false;
  const NoteHeader entry{
      .bytes = static_cast<std::uint32_t>(note.size()), .kind = kind, .frames = frames};
  copyIn(page(), written_, &entry, sizeof entry);
  if (!note.empty()) copyIn(page(), written_ + sizeof entry, note.data(), note.size());
  written_ += room(note.size());
  // Sequentially consistent, as in arm() and look(). So either this thread sees that the receiver
  // sleeps, or the receiver sees this note before it sleeps.
  order_.release();
  page().written.store(written_);
  if (page().armed.load() != 0 && page().armed.exchange(0) != 0) ring();
  return true;
}

void RingSender::ring() const {
  const std::uint64_t one = 1;
  // This fails only if the peer itself has filled the eventfd, which hurts only the peer.
  [[maybe_unused]] const auto rung = ::write(bell_.get(), &one, sizeof one);
}

}  // namespace viaduct::agent
