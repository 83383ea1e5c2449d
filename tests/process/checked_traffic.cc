#include "process/checked_traffic.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <set>
#include <utility>

#include "base/guarded.h"
#include "process/words.h"
#include "support/bytes.h"

namespace viaduct::testing {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kBytes = 1 << 20;
constexpr std::uint64_t kSlots = 4, kSlotBytes = kBytes / kSlots;  // slots of an inbox
constexpr std::size_t kBuffers = 6, kKept = 6;
// The limit of a wait. A transfer without its own deadline has to end long before, by
// Settings::deadline and the grace.
constexpr auto kForEver = 120s;

// The addresses of all memory that this process has had for traffic.
base::Guarded<std::set<void*>> used_addresses;

// A word of pattern `number`. All words differ, so a shifted, stale or missing one is noticed.
std::uint64_t wordOf(std::uint64_t number, std::uint64_t at) {
  return base::Random(number * 0x100000000U + at).next();
}
void fill(std::span<std::byte> bytes, std::uint64_t number) {
  for (std::uint64_t at = 0; at < bytes.size(); at += 8) {
    const std::uint64_t word = wordOf(number, at);
    std::memcpy(bytes.data() + at, &word, 8);
  }
}
// The position of the first wrong word. `from`: the offset in the pattern at which the bytes begin.
std::optional<std::uint64_t> wrongAt(std::span<const std::byte> bytes, std::uint64_t number,
                                     std::uint64_t from = 0) {
  for (std::uint64_t at = 0; at < bytes.size(); at += 8) {
    const std::uint64_t word = wordOf(number, from + at);
    if (std::memcmp(bytes.data() + at, &word, 8) != 0) return at;
  }
  return std::nullopt;
}

// Text for the report of a violation.
std::string describe(std::span<const std::byte> bytes, std::uint64_t at, std::uint64_t number) {
  std::uint64_t wrong = 0;
  for (std::uint64_t i = 0; i < bytes.size(); i += 8)
    wrong += wrongAt(bytes.subspan(i, 8), number, i) ? 1 : 0;
  return fmt::format("{:02x} at {} of {}, {} words wrong", fmt::join(bytes.subspan(at, 8), " "), at,
                     bytes.size(), wrong);
}

// The peer's latest pin whose label starts with `prefix`.
std::optional<PinInfo> latest(const Peer& peer, const std::string& prefix) {
  std::optional<PinInfo> found;
  std::uint64_t newest = 0;
  for (PinInfo& pin : peer.pins()) {
    if (!pin.label.starts_with(prefix)) continue;
    const std::uint64_t number = std::stoull(pin.label.substr(pin.label.rfind(':') + 1));
    if (std::exchange(newest, std::max(newest, number)) > number) continue;
    found = std::move(pin);
  }
  return found;
}

}  // namespace

CheckedTraffic::CheckedTraffic(Agent& agent, std::string peer, bool heap, std::uint64_t seed,
                               Violated violated)
    : agent_(agent),
      peer_(std::move(peer)),
      instance_(std::to_string(seed)),
      heap_(heap),
      violated_(std::move(violated)),
      random_(seed) {
  for (std::size_t i = 0; i < kBuffers; ++i) {
    buffers_.push_back(memory(""));
    seal(*buffers_.back());
  }
  inbox_ = memory(label("inbox"));
  shelf_ = memory(label("shelf"));
  yard_ = memory(label("yard"));
  copies_ = std::thread([this] { copyUntilStopped(); });
  releases_thread_ = std::thread([this] { releaseUntilStopped(); });
}

void CheckedTraffic::stop() {
  if (stop_.exchange(true)) return;
  acknowledged_.notify_all();
  copies_.join();
  releases_thread_.join();
  for (const auto& one : buffers_) inspect(*one, "a buffer whose transfer has ended");
  for (const auto& one : released_) inspect(*one, "released memory");
}

std::string CheckedTraffic::counts() const {
  return fmt::format(
      "{} transfers done, {} failed, {} contents and {} notes verified, {} released, {} of these "
      "unsettled at first",
      done_.load(), failed_.load(), verified_.load(), notes_.load(), releases_.load(),
      unsettled_.load());
}

std::string CheckedTraffic::label(const std::string& what) {
  return fmt::format("{}:{}:{}:{}", what, peer_, instance_, ++labels_);
}

// Replaces the memory by a range without access, in one step, so that no address is used twice.
// Transfers name addresses, and are planned again when pins change. A peer that was stopped could
// otherwise rightly reach new memory at an old address. Memory of Agent::allocate would leave its
// range to the next mapping of any thread.
CheckedTraffic::Memory::~Memory() {
  pin.reset();
  if (own.empty()) return;
  static_cast<void>(::mmap(own.data(), own.size(), PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0));
}

std::unique_ptr<CheckedTraffic::Memory> CheckedTraffic::memory(const std::string& label) {
  auto out = std::make_unique<Memory>();
  Segment segment;
  if (!heap_) {
    out->file = *base::SharedMemory::allocate(kBytes);
    segment = out->file.segment();
  }
  void* const own = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                           heap_ ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, segment.fd, 0);
  if (own != MAP_FAILED) out->own = {static_cast<std::byte*>(own), kBytes};
  if (!used_addresses.with([&](auto& used) { return used.insert(own).second; }))
    violated_("an address is used twice, so transfers may reach new memory");
  segment.address = reinterpret_cast<std::uintptr_t>(out->own.data());
  segment.bytes = kBytes;
  auto pin = agent_.pin(segment, label);
  if (pin)
    out->pin.emplace(*std::move(pin));
  else
    violated_("no memory: " + pin.error().text());
  return out;
}

void CheckedTraffic::seal(Memory& memory) {
  memory.mark = static_cast<std::byte>(++patterns_);
  fillWith(memory.bytes(), memory.mark);
}

void CheckedTraffic::inspect(const Memory& memory, const char* whose) {
  if (allAre(memory.bytes(), memory.mark)) return;
  const auto bytes = memory.bytes();
  const auto at = std::ranges::find_if(bytes, [&](std::byte one) { return one != memory.mark; });
  violated_(fmt::format("{}: {} was changed at {}", peer_, whose, at - bytes.begin()));
}

// Returns a buffer for its check once all other buffers have had their turn, so that late bytes had
// time to arrive.
CheckedTraffic::Memory& CheckedTraffic::nextBuffer() {
  last_buffer_ = (last_buffer_ + 1) % buffers_.size();
  inspect(*buffers_[last_buffer_], "a buffer whose transfer has ended");
  return *buffers_[last_buffer_];
}

// A random part of `within` bytes, at a multiple of 8: 1 to 256 equal, touching blocks of 8 bytes
// to 256 KiB.
CheckedTraffic::Part CheckedTraffic::anyPart(std::uint64_t within) {
  Part part;
  part.block = std::uint64_t{8} << random_.below(16);
  part.block = std::min(part.block, within);
  part.count = 1 + random_.below(std::min<std::uint64_t>(within / part.block, 256));
  part.offset = random_.below((within - part.bytes()) / 8 + 1) * 8;
  return part;
}

void CheckedTraffic::copyUntilStopped() {
  while (!stop_) {
    const auto peer = agent_.peer(peer_);
    if (!peer || !peer->ready(50ms)) {
      std::this_thread::sleep_for(1ms);
      continue;
    }
    const std::uint64_t what = random_.below(10);
    if (what < 2)
      copyOverAndOver(*peer);
    else if (what < 5)
      writeAndReadBack(*peer);
    else if (what < 8)
      writeWithNote(*peer);
    else
      sendNotes(*peer);
  }
}

// Leaves hardly any time between copies, so that most stops and kills fall into a copy.
void CheckedTraffic::copyOverAndOver(const Peer& peer) {
  const auto yard = latest(peer, "yard:" + agent_.name() + ":");
  if (!yard) return;
  Memory& local = nextBuffer();
  const auto kind = random_.chance(0.7) ? OpKind::kWrite : OpKind::kRead;
  move(kind, peer, local, {.block = kBytes, .count = 1}, *yard, {.again = 10ms});
  seal(local);
}

// Only this traffic writes to its shelf, in this session and all others.
void CheckedTraffic::writeAndReadBack(const Peer& peer) {
  const auto shelf = latest(peer, "shelf:" + agent_.name() + ":");
  if (!shelf) return;
  Memory& from = nextBuffer();
  Memory& back = nextBuffer();
  const std::uint64_t number = ++patterns_;
  const Part part = anyPart(kBytes);
  const auto of = [&](const Memory& memory) {
    return memory.bytes().subspan(part.offset, part.bytes());
  };
  fill(of(from), number);
  const std::uint64_t first = peer.epoch();
  const bool wrote = move(OpKind::kWrite, peer, from, part, *shelf, {.remote_offset = part.offset});
  const std::uint64_t second = peer.epoch();
  if (wrote && move(OpKind::kRead, peer, back, part, *shelf, {.remote_offset = part.offset})) {
    if (const auto at = wrongAt(of(back), number))
      violated_(fmt::format(
          "{}: read back is not what was written, {}; mark {:02x}, epochs {}, {}, {}, {} x {}",
          peer_, describe(of(back), *at, number), static_cast<unsigned>(back.mark), first, second,
          peer.epoch(), part.count, part.block));
    ++verified_;
  }
  seal(from);
  seal(back);
}

// Writes a pattern with a note, then waits until the peer has answered the note or the session has
// ended. So the peer has checked a slot before it is written again.
void CheckedTraffic::writeWithNote(const Peer& peer) {
  const auto inbox = latest(peer, "inbox:" + agent_.name() + ":");
  if (!inbox) return;
  Memory& from = nextBuffer();
  const std::uint64_t number = ++patterns_, slot = number % kSlots, epoch = peer.epoch();
  Part part = anyPart(kSlotBytes);
  fill(from.bytes().subspan(part.offset, part.bytes()), number);
  const std::string note = fmt::format("data {} {} {} {} {}", instance_, number,
                                       slot * kSlotBytes + part.offset, part.bytes(), epoch);
  const bool moved = move(OpKind::kWrite, peer, from, part, *inbox,
                          {.remote_offset = slot * kSlotBytes + part.offset, .note = note});
  seal(from);
  std::unique_lock lock(mutex_);
  while (moved && !stop_ && acknowledged_data_ < number && peer.epoch() == epoch)
    acknowledged_.wait_for(lock, 10ms);
}

void CheckedTraffic::sendNotes(const Peer& peer) {
  for (std::uint64_t left = 1 + random_.below(20); left > 0 && !stop_; --left) {
    const std::string padding(random_.chance(0.1) ? 3000 : random_.below(100), '.');
    const Status sent = peer.note(
        fmt::format("note {} {} {} {}", instance_, notes_sent_ + 1, peer.epoch(), padding));
    if (!sent && sent.error().code == Code::kBusy) return;
    // The number is used up even after a failed send, because the note may have left with the
    // session that ended.
    ++notes_sent_;
    if (!sent) return;
  }
}

// Some posts get a short deadline or a cancel. Returns true if the transfer is done.
bool CheckedTraffic::move(OpKind kind, const Peer& peer, const Memory& local, const Part& here,
                          const PinInfo& remote, const How& how) {
  const auto blocks = [&](std::uint64_t base) {
    return Selection{*Blocks::strided({.base = base, .bytes = here.block, .count = here.count}),
                     {}};
  };
  Selection from = blocks(local.pin->info().address + here.offset);
  Selection into = blocks(remote.address + how.remote_offset);
  if (random_.chance(0.5))
    for (std::uint64_t i = here.count; i-- > 0;) {
      from.indices.push_back(static_cast<std::uint32_t>(i));
      into.indices.push_back(static_cast<std::uint32_t>(i));
    }
  auto transfer = agent_.plan(kind, peer, from, into);
  bool done = transfer.has_value();
  const auto until = Clock::now() + how.again;
  for (bool first = true; done && (first || Clock::now() < until); first = false) {
    PostOptions options{.note = std::as_bytes(std::span(how.note))};
    if (random_.chance(0.05)) options.deadline = std::chrono::microseconds(random_.below(5000));
    Status ended = transfer->post(options);
    if (ended && random_.chance(0.05)) transfer->cancel();
    if (ended) ended = transfer->wait(kForEver);
    if (transfer->end().state == TransferState::kRunning)
      violated_(peer_ + ": a transfer does not end");
    done = ended.has_value();
    ++(done ? done_ : failed_);
  }
  return done;
}

// Releases memory while the peer copies to and from it, and pins other memory.
void CheckedTraffic::releaseUntilStopped() {
  base::Random random(patterns_ + 1);
  while (!stop_) {
    std::this_thread::sleep_for(std::chrono::microseconds(random.below(60'000)));
    const bool shelf = random.chance(0.5);
    auto& lent = shelf ? shelf_ : yard_;
    auto gone = std::exchange(lent, memory(label(shelf ? "shelf" : "yard")));
    becomesOurs(*gone);
    seal(*gone);
    released_.push_back(std::move(gone));
    if (released_.size() <= kKept) continue;
    inspect(*released_.front(), "released memory");
    released_.pop_front();
  }
}

// A peer that was stopped in a copy leaves the copy once it continues, so this may wait long.
void CheckedTraffic::becomesOurs(Memory& memory) {
  ++releases_;
  const Status released = memory.pin->release();
  if (released) return;
  if (released.error().code != Code::kPeerLost)
    violated_(peer_ + ": release: " + released.error().text());
  ++unsettled_;
  const auto until = Clock::now() + kForEver;
  while (!areSettled(released.error().peer) && Clock::now() < until)
    std::this_thread::sleep_for(100us);
  if (!areSettled(released.error().peer)) violated_(released.error().peer + ": never settled");
}

// Parses "anna, boris", the peers that an error of release() names.
bool CheckedTraffic::areSettled(std::string names) const {
  std::ranges::replace(names, ',', ' ');
  return std::ranges::all_of(words(names), [&](const std::string& name) {
    const auto peer = agent_.peer(name);
    return peer && peer->settled();
  });
}

void CheckedTraffic::take(const Note& note) {
  const auto in = words(std::string(note.text()));
  if (in.size() < 3) return violated_(peer_ + ": a note that nobody sent");
  const auto peer = agent_.peer(peer_);
  if (!peer) return;
  Heard& heard = heard_[in[1]];
  if (in[0] == "data") takeData(*peer, in, heard);
  if (in[0] == "note") takeNumber(*peer, std::stoull(in[2]), std::stoull(in.at(3)), heard);
  if (in[0] == "seen" && in[1] == instance_) {
    const std::lock_guard lock(mutex_);
    acknowledged_data_ = std::max<std::uint64_t>(acknowledged_data_, std::stoull(in[2]));
    acknowledged_.notify_all();
  }
}

// Checks the contents only in the session in which they were written, because the next session may
// write others.
void CheckedTraffic::takeData(const Peer& peer, const std::vector<std::string>& in, Heard& heard) {
  const std::uint64_t number = std::stoull(in.at(2)), epoch = std::stoull(in.at(5));
  if (number <= heard.data) violated_(fmt::format("{}: data {} comes again", peer_, number));
  heard.data = number;
  const auto before = peer.epoch();
  const auto bytes = inbox_->bytes().subspan(std::stoull(in[3]), std::stoull(in[4]));
  const auto wrong = wrongAt(bytes, number);
  const bool same = before == epoch && peer.epoch() == epoch;
  if (same && wrong)
    violated_(fmt::format("{}: data {} is not there with its note, {}", peer_, number,
                          describe(bytes, *wrong, number)));
  if (same) ++verified_;
  static_cast<void>(peer.note(fmt::format("seen {} {}", in[1], number)));
}

// The end of a session may lose some notes, once. The sender read the epoch `sent_in` before it
// sent the note, so the note belongs to this session or a later one.
void CheckedTraffic::takeNumber(const Peer& peer, std::uint64_t number, std::uint64_t sent_in,
                                Heard& heard) {
  if (heard.note == 0) {
    heard.first_epoch = sent_in;
  } else if (number <= heard.note) {
    violated_(fmt::format("{}: note {} after {}", peer_, number, heard.note));
  } else if (number > heard.note + 1 && ++heard.gaps > peer.epoch() - heard.first_epoch) {
    violated_(fmt::format("{}: notes before {} are missing", peer_, number));
  }
  heard.note = number;
  ++notes_;
}

}  // namespace viaduct::testing
