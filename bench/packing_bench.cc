// Writes many small pieces directly, and packed by the library. The floor is a loop that gathers
// into chunks here, and scatters from them at the other end. All in turns, between two processes of
// this host. usage: packing_bench BACKEND [ROUNDS]
#include <fmt/format.h>
#include <viaduct/viaduct.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "forked.h"
#include "median.h"
#include "must.h"

namespace {

using namespace viaduct;
using namespace viaduct::bench;
using namespace std::chrono_literals;

constexpr std::uint64_t kBytes = 16U << 20U, kChunk = 1U << 20U;
constexpr std::uint32_t kSlots = 4;
constexpr std::uint32_t kChunks = kBytes / kChunk;
constexpr std::uint64_t kPieces[] = {256, 512, 1024, 4096, 8192, 16384, 32768, 65536};

Agent open(const char* name, const char* backend) {
  return must(Agent::open(
      {.name = name, .listen = {"127.0.0.1:0"}, .insecure = true, .backends = {backend}}));
}

// Pieces with gaps of their own size, as those of some heads of a token.
Blocks pieces(std::uint64_t address, std::uint64_t bytes) {
  return must(Blocks::strided(
      {.base = address, .stride = 2 * bytes, .bytes = bytes, .count = kBytes / bytes}));
}

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

// A round; piece 0 ends the destination.
struct Round {
  std::uint64_t stream = 0, piece = 0;
  bool packed = false;
  std::byte fill{};
};
enum class How { kDirect, kPacked, kFloor };
struct Place {
  std::uint64_t pool = 0, ring = 0;
};

Status runDestination(const char* backend, int in, int out) {
  Agent agent = open("destination", backend);
  const Pin pool = must(agent.allocate(2 * kBytes, {.label = "pool"}));
  const Pin ring = must(agent.allocate(kSlots * kChunk, {.label = "ring"}));
  std::memset(pool.data(), 1, pool.size());
  std::memset(ring.data(), 1, ring.size());
  put(out, agent.exportCard());
  putValue(out, Place{pool.info().address, ring.info().address});
  static_cast<void>(getValue<int>(in));  // the source is connected
  const Peer source = must(agent.peer("source"));
  must(source.ready(60s));
  while (true) {
    const auto round = getValue<Round>(in);
    if (round.piece == 0) return Ok{};
    const std::uint32_t marks = round.packed ? kChunks : 1;
    const MarkStream stream =
        must(agent.openMarks(source, {.number = round.stream, .marks = marks}));
    putValue(out, 0);
    for (std::uint32_t i = 0; i < marks; ++i) {
      must(stream.wait(i, 60s));
      if (!round.packed) continue;
      scatter(pool.data(), ring.data() + i % kSlots * kChunk, round.piece, i);
      must(stream.mark(i));
    }
    putValue(out, Clock::now());
    agent.poll();
    for (std::uint64_t at = 0; at < 2 * kBytes; at += 2 * round.piece)
      if (pool.data()[at] != round.fill || pool.data()[at + round.piece - 1] != round.fill)
        die("a piece did not arrive");
  }
}

class Source {
 public:
  Source(const char* backend, Child& child)
      : child_(child),
        agent_(open("source", backend)),
        pool_(must(agent_.allocate(2 * kBytes))),
        ring_(must(agent_.allocate(kSlots * kChunk))),
        peer_(must(agent_.importCard(get(child.in())))),
        there_(getValue<Place>(child.in())) {
    std::memset(pool_.data(), 2, pool_.size());
    std::memset(ring_.data(), 2, ring_.size());
    must(peer_.ready(60s));
    must(peer_.waitPin("pool", 60s));
    must(peer_.waitPin("ring", 60s));
    putValue(child.out(), 0);
    for (std::uint64_t slot = 0; slot < kSlots; ++slot) {
      const auto at = [&](std::uint64_t base) {
        return Selection{.blocks = must(Blocks::strided(
                             {.base = base + slot * kChunk, .bytes = kChunk, .count = 1}))};
      };
      slots_.push_back(
          must(agent_.plan(OpKind::kWrite, peer_, at(ring_.info().address), at(there_.ring))));
    }
  }

  // Milliseconds until all pieces are in their places.
  double run(std::uint64_t piece, How how) {
    const std::byte fill{static_cast<unsigned char>(++round_)};
    std::memset(pool_.data(), static_cast<int>(fill), pool_.size());
    const bool floor = how == How::kFloor;
    Transfer transfer = must(agent_.plan(
        OpKind::kWrite, peer_, {pieces(pool_.info().address, piece)}, {pieces(there_.pool, piece)},
        {.require = how == How::kPacked ? "packed" : "no-staging"}));
    putValue(child_.out(), Round{round_, piece, floor, fill});
    const MarkStream stream =
        must(agent_.openMarks(peer_, {.number = round_, .marks = floor ? kChunks : 0}));
    static_cast<void>(getValue<int>(child_.in()));
    const auto start = Clock::now();
    if (floor) {
      pack(stream, piece);
    } else {
      must(transfer.post({.mark = Mark{.stream = round_, .number = 0}}));
      must(transfer.wait(60s));
      path = transfer.path().text();
    }
    const auto end = getValue<Clock::time_point>(child_.in());
    return std::chrono::duration<double, std::milli>(end - start).count();
  }

  std::string path;

 private:
  void pack(const MarkStream& stream, std::uint64_t piece) {
    for (std::uint32_t i = 0; i < kChunks; ++i) {
      if (i >= kSlots) must(stream.wait(i - kSlots, 60s));
      Transfer& slot = slots_[i % kSlots];
      if (i >= kSlots) must(slot.wait(60s));
      gather(ring_.data() + i % kSlots * kChunk, pool_.data(), piece, i);
      must(slot.post({.mark = Mark{.stream = stream.number(), .number = i}}));
    }
    must(stream.waitCount(kChunks, 60s));
    for (Transfer& slot : slots_) must(slot.wait(60s));
  }

  Child& child_;
  Agent agent_;
  Pin pool_, ring_;
  Peer peer_;
  Place there_;
  std::vector<Transfer> slots_;
  std::uint64_t round_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) die("usage: packing_bench BACKEND [ROUNDS]");
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 11;
  Child child([&](int in, int out) { return runDestination(argv[1], in, out); });
  Source source(argv[1], child);
  fmt::print("{}: 16 MiB, {} rounds in turns; medians in ms\n\n", argv[1], rounds);
  fmt::print("{:>10} {:>10} {:>10} {:>10} {:>16}\n", "piece", "direct", "packed", "floor",
             "direct/packed");
  for (const std::uint64_t piece : kPieces) {
    std::vector<double> direct, packed, floor, ratios;
    for (int i = 0; i <= rounds; ++i) {
      const double a = source.run(piece, How::kDirect), b = source.run(piece, How::kPacked),
                   c = source.run(piece, How::kFloor);
      if (i == 0) continue;  // all are warm from here on
      direct.push_back(a);
      packed.push_back(b);
      floor.push_back(c);
      ratios.push_back(a / b);
    }
    fmt::print("{:>10} {:>10.2f} {:>10.2f} {:>10.2f} {:>16.2f}\n", piece, median(direct),
               median(packed), median(floor), median(ratios));
  }
  static_cast<void>(source.run(kPieces[0], How::kPacked));
  fmt::print("\n{}\n", source.path);
  putValue(child.out(), Round{});
}
