#include "core/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

#include "core/disjoint_blocks.h"
#include "core/find_twice.h"

namespace viaduct::core {
namespace {

// One side of a transfer: its selection, and the pins there.
struct Side {
  const char* name;
  const Selection& selection;
  const PinMap& pins;  // the pins that may serve it
  const PinMap& all;   // all pins, also those whose access does not allow it

  std::uint64_t taken() const {
    return selection.indices.empty() ? selection.blocks.count() : selection.indices.size();
  }
  std::uint64_t number(std::uint64_t k) const {
    return selection.indices.empty() ? k : selection.indices[k];
  }
};

Error bad(std::string detail, std::string remedy) {
  return {.code = Code::kInvalid,
          .operation = "plan",
          .detail = std::move(detail),
          .remedy = std::move(remedy)};
}

std::string nameBlock(const Side& side, std::uint64_t k) {
  const Extent block = side.selection.blocks[side.number(k)];
  return fmt::format("{} block {} (number {} of {} taken) at {:#x}, {} bytes,", side.name,
                     side.number(k), k, side.taken(), block.address, block.bytes);
}

Error noAccess(const Side& side, std::uint64_t k, const PinRange& pin, bool remote) {
  if (pin.write_only)
    return {.code = Code::kDenied,
            .operation = "plan",
            .detail = fmt::format("{} would be read, and pin {} is write-only", nameBlock(side, k),
                                  pin.slot),
            .cause = "the Card of the peer grants writing and no reading",
            .remedy = "ask the peer for a Card that grants reading"};
  return {
      .code = Code::kDenied,
      .operation = "plan",
      .detail =
          fmt::format("{} would be written, and pin {} is read-only", nameBlock(side, k), pin.slot),
      .cause = remote ? "its owner may not write that memory, has pinned it for reading only, "
                        "or has given a Card that grants reading only"
                      : "its owner may not write that memory, or has pinned it for reading only",
      .remedy = remote ? "name other memory, let the peer pin writable memory, or get a Card "
                         "that grants writing"
                       : "name other memory, or pin this again once it is writable"};
}

Error unpinned(const Side& side, std::uint64_t k, bool remote) {
  const Extent block = side.selection.blocks[side.number(k)];
  if (const PinRange* const pin = side.all.cover(block.address, block.bytes))
    return noAccess(side, k, *pin, remote);
  const PinRange* near = side.pins.cover(block.address, 1);
  std::string where = "is not in any pin";
  if (near != nullptr)
    where = fmt::format("is not inside one pin: pin {} ends at {:#x}", near->slot,
                        near->address + near->bytes);
  return {.code = Code::kDenied,
          .operation = "plan",
          .detail = fmt::format("{} {}", nameBlock(side, k), where),
          .remedy = remote ? "let the peer pin this memory in one piece, and wait for Peer::waitPin"
                           : "pin this memory in one piece and keep the Pin alive"};
}

Status checkIndices(const Side& side) {
  const std::uint64_t count = side.selection.blocks.count();
  if (side.taken() == 0)
    return bad(fmt::format("the {} side names no block", side.name), "name at least one");
  std::uint32_t largest = 0;
  for (const std::uint32_t i : side.selection.indices) largest = std::max(largest, i);
  if (side.selection.indices.empty() || largest < count) return Ok{};
  const auto& all = side.selection.indices;
  const auto at = std::find_if(all.begin(), all.end(), [&](auto i) { return i >= count; });
  const auto as_signed = static_cast<std::int32_t>(*at);  // block tables have signed integers
  return bad(fmt::format("{} index {}{} (number {} of {} taken) is out of range", side.name, *at,
                         as_signed < 0 ? fmt::format(" or {}", as_signed) : "", at - all.begin(),
                         all.size()),
             fmt::format("the list has {} blocks, numbered from 0", count));
}

Status checkWrittenOnce(const Side& side) {
  const auto twice = findTwice(side.selection.indices, side.selection.blocks.count());
  if (!twice) return Ok{};
  const auto& all = side.selection.indices;
  const auto first = std::find(all.begin(), all.end(), *twice);
  const auto second = std::find(first + 1, all.end(), *twice);
  return bad(fmt::format("{} block {} at {:#x} would be written twice: numbers {} and {} taken",
                         side.name, *twice, side.selection.blocks[*twice].address,
                         first - all.begin(), second - all.begin()),
             "name each block of the written side once");
}

std::uint64_t totalBytes(const Side& side) {
  if (side.selection.indices.empty()) return side.selection.blocks.bytes();
  std::uint64_t total = 0;
  for (const std::uint32_t i : side.selection.indices)
    if (__builtin_add_overflow(total, side.selection.blocks[i].bytes, &total))
      return std::numeric_limits<std::uint64_t>::max();
  return total;
}

Error unequal(const Side& local, const Side& remote) {
  return bad(fmt::format("the local side takes {} bytes in {} blocks, the remote one {} in {}",
                         totalBytes(local), local.taken(), totalBytes(remote), remote.taken()),
             "name the same number of bytes on both sides");
}

// Finds the pin that covers an address, and remembers it for the next address nearby.
class PinCursor {
 public:
  explicit PinCursor(const PinMap& pins) : pins_(&pins) {}
  // True if one pin covers all of the bytes. Then slot() and end() are that pin's.
  bool seek(std::uint64_t address, std::uint64_t bytes) {
    if (address - low_ >= width_) [[unlikely]]
      move(address);
    return end_ > address && end_ - address >= bytes;
  }
  std::uint32_t slot() const { return slot_; }
  std::uint64_t end() const { return end_; }

 private:
  void move(std::uint64_t address) {
    const PinMap::PinStretch stretch = pins_->stretch(address);
    low_ = stretch.low;
    width_ = stretch.high - stretch.low;
    end_ = stretch.pin == nullptr ? 0 : stretch.pin->address + stretch.pin->bytes;
    slot_ = stretch.pin == nullptr ? 0 : stretch.pin->slot;
  }
  const PinMap* pins_;
  std::uint64_t low_ = 0, width_ = 0, end_ = 0;
  std::uint32_t slot_ = 0;
};

// Builds a list of ops. A piece is merged into the last op if it continues that op on both sides
// and lies in the op's two pins.
class OpListBuilder {
 public:
  // Reserved memory that is never touched costs nothing. Beyond 128 MiB, growing costs little
  // beside the ops.
  explicit OpListBuilder(std::uint64_t most) {
    list_.ops.reserve(std::min(most, std::uint64_t{1} << 22U));
  }
  // Merges pieces of `bytes` each into the last op, from number `first` on. Returns the number of
  // the first piece that does not continue it.
  std::size_t extend(std::span<const std::uint64_t> local, std::span<const std::uint64_t> remote,
                     std::size_t first, std::uint64_t bytes) {
    std::uint64_t at = local_at_;
    const std::uint64_t apart = remote_at_ - at;
    std::uint64_t room = std::min(local_room_ - local_at_, remote_room_ - remote_at_);
    std::size_t piece = first;
    for (; piece < local.size() && local[piece] == at && remote[piece] == at + apart; ++piece) {
      if (room < bytes) break;
      room -= bytes;
      at += bytes;
    }
    if (piece == first) return first;
    list_.ops.back().bytes += at - local_at_;
    remote_at_ += at - local_at_;
    local_at_ = at;
    return piece;
  }
  void begin(std::uint64_t local, std::uint64_t remote, std::uint64_t bytes, const PinCursor& here,
             const PinCursor& there) {
    list_.ops.push_back({local, remote, bytes, here.slot(), there.slot()});
    addToSpan(here.slot(), there.slot());
    local_at_ = local + bytes;
    remote_at_ = remote + bytes;
    local_room_ = here.end();
    remote_room_ = there.end();
  }
  OpList take(std::uint64_t bytes) {
    list_.bytes = bytes;
    if (list_.ops.size() < list_.ops.capacity() / 2) list_.ops.shrink_to_fit();
    return std::move(list_);
  }

 private:
  void addToSpan(std::uint32_t local_pin, std::uint32_t remote_pin) {
    auto& spans = list_.spans;
    if (spans.empty() || spans.back().local_pin != local_pin ||
        spans.back().remote_pin != remote_pin)
      spans.push_back({local_pin, remote_pin, 0});
    ++spans.back().ops;
  }
  OpList list_;
  // The ends of the last op, and the ends of its pins. No piece starts at the initial values.
  std::uint64_t local_at_ = ~std::uint64_t{0}, remote_at_ = ~std::uint64_t{0};
  std::uint64_t local_room_ = 0, remote_room_ = 0;
};

// The addresses of a selection's blocks, a chunk at a time.
class Addresses {
 public:
  static constexpr std::size_t kChunk = 256;
  explicit Addresses(const Side& side) : side_(side) {}

  // The addresses of the next taken blocks, beginning with number `first`.
  std::span<const std::uint64_t> chunk(std::uint64_t first) {
    const std::size_t count = std::min<std::uint64_t>(kChunk, side_.taken() - first);
    const Blocks& blocks = side_.selection.blocks;
    const auto addresses = blocks.addresses();
    if (!addresses.empty() && side_.selection.indices.empty())
      return addresses.subspan(first, count);
    if (!addresses.empty())
      fill(first, count, [&](auto block) { return addresses[block]; });
    else if (blocks.runs() == 1)
      fill(first, count,
           [run = blocks.run(0)](auto block) { return run.base + run.stride * block; });
    else if (!side_.selection.indices.empty())
      fill(first, count, [&](auto block) { return blocks[block].address; });
    else if (const auto repeated = DisjointBlocks::repeated(blocks); !repeated.addresses.empty())
      repeat(first, count, repeated);
    else
      walk(first, count, blocks);
    return std::span(chunk_).first(count);
  }

 private:
  template <class F>
  void fill(std::uint64_t first, std::size_t count, F address_of) {
    const auto& indices = side_.selection.indices;
    if (indices.empty())
      for (std::size_t i = 0; i < count; ++i) chunk_[i] = address_of(first + i);
    else
      for (std::size_t i = 0; i < count; ++i) chunk_[i] = address_of(indices[first + i]);
  }
  // Looks up a run once, and not for each of its blocks.
  void walk(std::uint64_t first, std::size_t count, const Blocks& blocks) {
    std::size_t number = blocks.runOf(first);
    Run run = blocks.run(number);
    std::uint64_t at = first - blocks.firstOf(number);
    for (std::size_t i = 0; i < count; ++i) {
      if (at == run.count) {
        run = blocks.run(++number);
        at = 0;
      }
      chunk_[i] = run.base + at++ * run.stride;
    }
  }
  // Divides once, and not for each block.
  void repeat(std::uint64_t first, std::size_t count, const DisjointBlocks::Repeated& from) {
    const std::size_t each = from.addresses.size();
    std::size_t origin = first / each, at = first % each;
    for (std::size_t i = 0; i < count; ++i) {
      chunk_[i] = from.origins[origin] + from.addresses[at];
      if (++at != each) continue;
      at = 0;
      ++origin;
    }
  }
  const Side& side_;
  std::array<std::uint64_t, kChunk> chunk_;
};

// Pairs blocks if all of both sides have one size. KV caches are like this, so the loop must be
// fast.
Result<OpList> pairBlocks(const Side& local, const Side& remote) {
  const std::uint64_t bytes = local.selection.blocks.blockBytes();
  const std::uint64_t taken = local.taken();
  Addresses from(local), to(remote);
  PinCursor here(local.pins), there(remote.pins);
  OpListBuilder ops(taken);
  for (std::uint64_t first = 0; first < taken; first += Addresses::kChunk) {
    const auto a = from.chunk(first), b = to.chunk(first);
    for (std::size_t i = ops.extend(a, b, 0, bytes); i < a.size();
         i = ops.extend(a, b, i + 1, bytes)) {
      if (!here.seek(a[i], bytes)) return unpinned(local, first + i, false);
      if (!there.seek(b[i], bytes)) return unpinned(remote, first + i, true);
      ops.begin(a[i], b[i], bytes, here, there);
    }
  }
  return ops.take(taken * bytes);
}

// A selection as one stream of bytes. A run of touching blocks is one piece if it is taken whole
// and lies in one pin.
class Stream {
 public:
  explicit Stream(const Side& side)
      : side_(side), pins_(side.pins), taken_(side.taken()), all_(side.selection.indices.empty()) {}

  bool empty() const { return left_ == 0; }
  // Loads the next piece if the current one is used up. False: no single pin covers the next block.
  bool load() {
    if (left_ != 0 || next_ == taken_) return true;
    const Blocks& blocks = side_.selection.blocks;
    const std::uint64_t index = all_ ? next_ : side_.selection.indices[next_];
    if (index - first_ >= width_) enter(blocks, blocks.runOf(index));
    address_ = run_.base + (index - first_) * run_.stride;
    left_ = run_.bytes;
    const bool whole = all_ && index == first_ && run_.stride == run_.bytes &&
                       pins_.seek(address_, run_.bytes * width_);
    if (whole) left_ = run_.bytes * width_;
    next_ += whole ? width_ : 1;
    return whole || pins_.seek(address_, left_);
  }
  void skip(std::uint64_t bytes) {
    address_ += bytes;
    left_ -= bytes;
    if (left_ != 0) pins_.seek(address_, left_);
  }
  std::uint64_t address() const { return address_; }
  std::uint64_t left() const { return left_; }
  std::uint64_t current() const { return next_ - 1; }  // the piece's number, if it is one block
  const PinCursor& pins() const { return pins_; }

 private:
  void enter(const Blocks& blocks, std::size_t run) {
    run_ = blocks.run(run);
    first_ = blocks.firstOf(run);
    width_ = run_.count;
  }
  const Side& side_;
  PinCursor pins_;
  std::uint64_t taken_;
  bool all_;
  std::uint64_t next_ = 0, address_ = 0, left_ = 0;
  Run run_;
  std::uint64_t first_ = 0, width_ = 0;
};

Result<OpList> pairStreams(const Side& local, const Side& remote) {
  Stream from(local);
  Stream to(remote);
  const auto pieces = [](const Side& side) {
    const Selection& all = side.selection;
    return all.indices.empty() ? all.blocks.runs() : all.indices.size();
  };
  OpListBuilder ops(std::max(pieces(local), pieces(remote)));
  for (;;) {
    if (!from.load()) return unpinned(local, from.current(), false);
    if (!to.load()) return unpinned(remote, to.current(), true);
    if (from.empty() || to.empty()) break;
    const std::uint64_t bytes = std::min(from.left(), to.left());
    const std::array here{from.address()}, there{to.address()};
    if (ops.extend(here, there, 0, bytes) == 0)
      ops.begin(from.address(), to.address(), bytes, from.pins(), to.pins());
    from.skip(bytes);
    to.skip(bytes);
  }
  if (!from.empty() || !to.empty()) return unequal(local, remote);
  return ops.take(totalBytes(local));
}

// Whether the side takes only whole runs of touching blocks, which are fewer pieces than blocks.
bool takesWholeRuns(const Side& side) {
  const Blocks& blocks = side.selection.blocks;
  if (!side.selection.indices.empty() || blocks.runs() == blocks.count()) return false;
  for (std::size_t i = 0; i < blocks.runs(); ++i)
    if (const Run run = blocks.run(i); run.stride != run.bytes) return false;
  return true;
}

Result<OpList> pairUp(const Side& local, const Side& remote) {
  const std::uint64_t bytes = local.selection.blocks.blockBytes();
  const bool alike = bytes != 0 && bytes == remote.selection.blocks.blockBytes();
  if (alike && local.taken() != remote.taken()) return unequal(local, remote);
  if (!alike || (takesWholeRuns(local) && takesWholeRuns(remote)))
    return pairStreams(local, remote);
  return pairBlocks(local, remote);
}

// The pins that may be read or written by ops. Mostly all may, and no map is copied.
class Allowed {
 public:
  Allowed(const PinMap& all, OpKind kind)
      : all_(all), some_(all.allAllow(kind) ? std::nullopt : std::optional(all.allowing(kind))) {}
  const PinMap& pins() const { return some_ ? *some_ : all_; }

 private:
  const PinMap& all_;
  const std::optional<PinMap> some_;
};

}  // namespace

Result<OpList> coalesce(OpKind kind, const Selection& local, const Selection& remote,
                        const PinMap& local_pins, const PinMap& remote_pins) {
  const bool writes = kind == OpKind::kWrite;
  const OpKind here_kind = writes ? OpKind::kRead : OpKind::kWrite;
  const Allowed from_here(local_pins, here_kind), from_there(remote_pins, kind);
  const Side here{"local", local, from_here.pins(), local_pins};
  const Side there{"remote", remote, from_there.pins(), remote_pins};
  VIADUCT_CHECK(checkIndices(here));
  VIADUCT_CHECK(checkIndices(there));
  VIADUCT_CHECK(checkWrittenOnce(writes ? there : here));
  return pairUp(here, there);
}

}  // namespace viaduct::core
