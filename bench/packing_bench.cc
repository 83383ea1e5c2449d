// Writes many small pieces directly, and packed by the library. The floor is a loop that gathers
// into chunks here, and scatters from them at the other end. All ways take turns, between two
// processes of this host. usage: packing_bench BACKEND [ROUNDS]
#include "mark_rounds.h"

namespace {

using namespace viaduct;
using namespace viaduct::bench;

constexpr std::uint64_t kBytes = 16U << 20U, kChunk = 1U << 20U;
constexpr std::uint32_t kSlots = 4;
constexpr std::uint32_t kChunks = kBytes / kChunk;
constexpr std::uint64_t kPieces[] = {256, 512, 1024, 4096, 8192, 16384, 32768, 65536};

// The memory of each end: the pool with the pieces, and the floor's ring of chunks.
constexpr std::uint64_t kPool = 2 * kBytes, kRoom = kPool + kSlots * kChunk;

std::uint64_t inRing(std::uint64_t chunk) { return kPool + chunk % kSlots * kChunk; }

void gather(std::byte* chunk, const std::byte* from, std::uint64_t piece,
            std::uint64_t chunk_number) {
  from += 2 * chunk_number * kChunk;
  for (std::uint64_t at = 0; at < kChunk; at += piece)
    std::memcpy(chunk + at, from + 2 * at, piece);
}
void scatter(std::byte* to, const std::byte* chunk, std::uint64_t piece,
             std::uint64_t chunk_number) {
  to += 2 * chunk_number * kChunk;
  for (std::uint64_t at = 0; at < kChunk; at += piece) std::memcpy(to + 2 * at, chunk + at, piece);
}

struct Round {
  std::uint64_t stream = 0;
  std::uint32_t marks = 0;
  std::uint64_t piece = 0;
  bool packed = false;
  std::byte fill{};
};
enum class How { kDirect, kPacked, kFloor };

void receive(const Channel& parent, Target& target, const Round& round, const MarkStream& stream) {
  std::byte* const memory = target.memory.data();
  for (std::uint32_t i = 0; i < round.marks; ++i) {
    must(stream.wait(i, kLong));
    if (!round.packed) continue;
    scatter(memory, memory + inRing(i), round.piece, i);
    must(stream.mark(i));
  }
  parent.sendValue(Clock::now());
  target.agent.poll();
  for (std::uint64_t at = 0; at < kPool; at += 2 * round.piece)
    if (memory[at] != round.fill || memory[at + round.piece - 1] != round.fill)
      die("a piece did not arrive");
}

class Writer {
 public:
  Writer(const std::string& backend, Channel& child) : source_(backend, kRoom, child) {
    for (std::uint64_t slot = 0; slot < kSlots; ++slot)
      slots_.push_back(
          source_.plan(OpKind::kWrite, {.base = inRing(slot), .bytes = kChunk, .count = 1}));
  }
  void finish() const { source_.finish<Round>(); }

  // Returns the milliseconds until all pieces are in their places. The gaps between pieces have the
  // size of a piece, as if half of a token's heads were moved.
  double run(std::uint64_t piece, How how) {
    const std::byte fill{static_cast<unsigned char>(++round_)};
    std::memset(source_.memory.data(), static_cast<int>(fill), kPool);
    const bool floor = how == How::kFloor;
    Transfer transfer =
        source_.plan(OpKind::kWrite, {.stride = 2 * piece, .bytes = piece, .count = kBytes / piece},
                     {.require = how == How::kPacked ? "packed" : "no-staging"});
    source_.begin(Round{round_, floor ? kChunks : 1, piece, floor, fill});
    const MarkStream stream = must(
        source_.agent.openMarks(source_.peer, {.number = round_, .marks = floor ? kChunks : 0}));
    const auto start = Clock::now();
    if (floor) {
      pack(stream, piece);
    } else {
      postAndWait(transfer, {.mark = Mark{.stream = round_, .number = 0}});
      path = transfer.path().text();
    }
    return 1e3 * secondsBetween(start, source_.channel.receiveValue<Clock::time_point>());
  }

  std::string path;

 private:
  void pack(const MarkStream& stream, std::uint64_t piece) {
    std::byte* const memory = source_.memory.data();
    for (std::uint32_t i = 0; i < kChunks; ++i) {
      if (i >= kSlots) must(stream.wait(i - kSlots, kLong));
      Transfer& slot = slots_[i % kSlots];
      if (i >= kSlots) must(slot.wait(kLong));
      gather(memory + inRing(i), memory, piece, i);
      must(slot.post({.mark = Mark{.stream = stream.number(), .number = i}}));
    }
    must(stream.waitCount(kChunks, kLong));
    for (Transfer& slot : slots_) must(slot.wait(kLong));
  }

  MarkSource source_;
  std::vector<Transfer> slots_;
  std::uint64_t round_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const Arguments given(argc, argv, "packing_bench BACKEND [ROUNDS]");
  const std::string backend = given.text(0);
  const int rounds = given.number(1, 11);
  Child child([&](Channel& parent) {
    receiveRounds<Round>(backend, kRoom, parent,
                         [&](Target& target, const Round& round, const MarkStream& stream) {
                           receive(parent, target, round, stream);
                         });
  });
  Writer writer(backend, child);
  fmt::print("{}: 16 MiB, {} rounds in turns; medians in ms\n\n", backend, rounds);
  Table table({figure("piece", 0), figure("direct", 2), figure("packed", 2), figure("floor", 2),
               figure("direct/packed", 2)});
  for (const std::uint64_t piece : kPieces) {
    const auto [direct, packed, floor] =
        inTurns({rounds, 1}, {[&](int) { return writer.run(piece, How::kDirect); },
                              [&](int) { return writer.run(piece, How::kPacked); },
                              [&](int) { return writer.run(piece, How::kFloor); }});
    table.row(piece, direct, packed, floor, direct / packed);
  }
  writer.run(kPieces[0], How::kPacked);
  fmt::print("\n{}\n", writer.path);
  writer.finish();
}
