#include "core/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <string>

#include "base/random.h"
#include "core/disjoint_blocks.h"
#include "support/text.h"

namespace viaduct::core {
namespace {

using base::Random;

constexpr std::uint64_t kMiB = 1U << 20U;

Selection strided(std::uint64_t base, std::uint64_t stride, std::uint64_t bytes,
                  std::uint64_t count, std::vector<std::uint32_t> indices = {}) {
  return {*Blocks::strided({.base = base, .stride = stride, .bytes = bytes, .count = count}),
          std::move(indices)};
}
Selection list(std::vector<Extent> extents, std::vector<std::uint32_t> indices = {}) {
  return {*Blocks::list(extents), std::move(indices)};
}
PinMap everywhere() { return PinMap({{.address = 0, .bytes = 1ULL << 63U, .slot = 0}}); }

// The totals of a list equal the sums over its ops.
void expectTotals(const OpList& list) {
  std::uint64_t bytes = 0;
  for (const Op& op : list.ops) bytes += op.bytes;
  EXPECT_EQ(list.bytes, bytes);
  auto op = list.ops.begin();
  for (const PinSpan& span : list.spans)
    for (std::size_t i = 0; i < span.ops; ++i, ++op) {
      ASSERT_NE(op, list.ops.end());
      EXPECT_EQ(op->local_pin, span.local_pin);
      EXPECT_EQ(op->remote_pin, span.remote_pin);
    }
  EXPECT_EQ(op, list.ops.end());
}

std::vector<Op> planned(const Selection& local, const Selection& remote,
                        const PinMap& here = everywhere(), const PinMap& there = everywhere()) {
  auto ops = coalesce(OpKind::kWrite, local, remote, here, there);
  EXPECT_TRUE(ops) << ops.error().text();
  if (!ops) return {};
  expectTotals(*ops);
  return ops->ops;
}
std::string refused(OpKind kind, const Selection& local, const Selection& remote,
                    const PinMap& here = everywhere(), const PinMap& there = everywhere()) {
  const auto ops = coalesce(kind, local, remote, here, there);
  return ops ? "planned" : ops.error().text();
}
using testing::has;

TEST(Coalesce, DenseRunsAreOneOp) {
  const auto ops = planned(strided(0x1000, 64, 64, 1000), strided(0x90000, 64, 64, 1000));
  EXPECT_EQ(ops, (std::vector<Op>{{0x1000, 0x90000, 64000, 0, 0}}));
}

TEST(Coalesce, BlocksOfDifferentSizesAreOneStreamOfBytes) {
  const auto ops = planned(list({{100, 6}, {200, 2}}), list({{1000, 3}, {2000, 5}}));
  EXPECT_EQ(ops,
            (std::vector<Op>{{100, 1000, 3, 0, 0}, {103, 2000, 3, 0, 0}, {200, 2003, 2, 0, 0}}));
}

// Four chunks of addresses, so that repeats end inside chunks.
TEST(Coalesce, RepeatedAddressesAreLikeTheirList) {
  std::vector<std::uint64_t> addresses, origins;
  std::vector<Extent> extents;
  for (std::uint64_t i = 0; i < 97; ++i) addresses.push_back((i * 31 % 97) * 16);
  for (std::uint64_t i = 0; i < 10; ++i) origins.push_back(0x10000 + i * 0x1000);
  for (const std::uint64_t origin : origins)
    for (const std::uint64_t address : addresses) extents.push_back({origin + address, 16});
  const Blocks repeated = DisjointBlocks::at(addresses, 16, origins);
  EXPECT_EQ(repeated.count(), extents.size());
  EXPECT_EQ(repeated.runs(), extents.size());
  EXPECT_EQ(repeated.bytes(), extents.size() * 16);
  EXPECT_TRUE(repeated.addresses().empty());
  for (std::size_t i = 0; i < extents.size(); ++i) EXPECT_EQ(repeated[i], extents[i]);
  const auto dense = strided(1U << 20U, 16, 16, extents.size());
  EXPECT_EQ(planned({repeated}, dense), planned(list(extents), dense));
  const auto some = strided(1U << 20U, 16, 16, 3);
  EXPECT_EQ(planned({repeated, {5, 96, 97}}, some), planned(list(extents, {5, 96, 97}), some));
}

TEST(Coalesce, NeighboursMergeOnlyWhereBothSidesTouch) {
  const auto ops =
      planned(strided(0, 8, 8, 10, {3, 4, 5, 6}), strided(0x1000, 8, 8, 10, {1, 2, 7, 8}));
  EXPECT_EQ(ops, (std::vector<Op>{{24, 0x1008, 16, 0, 0}, {40, 0x1038, 16, 0, 0}}));
}

TEST(Coalesce, ReadOnlyPinsAreReadAndNotWritten) {
  const PinMap both({{.address = 0, .bytes = 0x2000, .slot = 1, .read_only = true},
                     {.address = 0, .bytes = 0x1000, .slot = 2}});
  const auto low = strided(0x100, 64, 64, 4), high = strided(0x1800, 64, 64, 4);
  // Both pins serve reads. Only the writable pin serves writes, though the other reaches further.
  for (const Selection& part : {low, high})
    EXPECT_TRUE(coalesce(OpKind::kRead, low, part, everywhere(), both));
  const auto ops = planned(low, low, everywhere(), both);
  ASSERT_EQ(ops.size(), 1U);
  EXPECT_EQ(ops[0].remote_pin, 2U);
  const std::string remote = refused(OpKind::kWrite, low, high, everywhere(), both);
  EXPECT_TRUE(has(remote, "remote block 0") && has(remote, "pin 1 is read-only")) << remote;
  const std::string local = refused(OpKind::kRead, high, low, both, everywhere());
  EXPECT_TRUE(has(local, "local block 0") && has(local, "pin 1 is read-only")) << local;
  EXPECT_TRUE(has(refused(OpKind::kWrite, low, strided(0x1f80, 64, 64, 4), everywhere(), both),
                  "read-only"));
  EXPECT_TRUE(has(refused(OpKind::kWrite, low, strided(0x3000, 64, 64, 4), everywhere(), both),
                  "not in any pin"));
}

TEST(Coalesce, WriteOnlyPinsAreWrittenAndNotRead) {
  const PinMap both({{.address = 0, .bytes = 0x2000, .slot = 1, .write_only = true},
                     {.address = 0, .bytes = 0x1000, .slot = 2}});
  const auto low = strided(0x100, 64, 64, 4), high = strided(0x1800, 64, 64, 4);
  EXPECT_TRUE(coalesce(OpKind::kWrite, low, high, everywhere(), both));
  const auto ops = coalesce(OpKind::kRead, low, low, everywhere(), both);
  ASSERT_TRUE(ops);
  EXPECT_EQ(ops->ops.at(0).remote_pin, 2U);
  const std::string why = refused(OpKind::kRead, low, high, everywhere(), both);
  EXPECT_TRUE(has(why, "remote block 0") && has(why, "pin 1 is write-only")) << why;
}

TEST(Coalesce, AnOpStaysInsideOnePinOnEitherSide) {
  const PinMap two(
      {{.address = 0, .bytes = 32, .slot = 4}, {.address = 32, .bytes = 64, .slot = 9}});
  const auto local = planned(strided(0, 16, 16, 6), strided(0x1000, 16, 16, 6), two);
  EXPECT_EQ(local, (std::vector<Op>{{0, 0x1000, 32, 4, 0}, {32, 0x1020, 64, 9, 0}}));
  const auto remote = planned(strided(0x1000, 24, 16, 6), strided(0, 16, 16, 6), everywhere(), two);
  EXPECT_EQ(remote.size(), 6U);
  EXPECT_EQ(remote[1].remote_pin, 4U);
  EXPECT_EQ(remote[2].remote_pin, 9U);
}

TEST(Coalesce, AmongPinsThatOverlapTheOneThatReachesFurthestServes) {
  const PinMap pins({{.address = 0, .bytes = 16, .slot = 1},
                     {.address = 0, .bytes = 64, .slot = 2},
                     {.address = 16, .bytes = 8, .slot = 3}});
  const auto ops = planned(strided(0, 16, 16, 4), strided(0x1000, 16, 16, 4), pins);
  EXPECT_EQ(ops, (std::vector<Op>{{0, 0x1000, 64, 2, 0}}));
  ASSERT_NE(pins.cover(20, 30), nullptr);
  EXPECT_EQ(pins.cover(20, 30)->slot, 2U);
  EXPECT_EQ(pins.cover(20, 45), nullptr);
  EXPECT_EQ(PinMap().cover(0, 1), nullptr);
}

TEST(Coalesce, RefusesAnIndexOutOfRange) {
  const auto text =
      refused(OpKind::kWrite, strided(0, 8, 8, 10, {0, 10}), strided(0, 8, 8, 10, {0, 1}));
  EXPECT_TRUE(has(text, "local index 10 (number 1 of 2 taken) is out of range")) << text;
  EXPECT_TRUE(has(text, "the list has 10 blocks")) << text;
  const std::vector<std::int32_t> padded{4, -1};
  const auto padding =
      refused(OpKind::kWrite, {*Blocks::strided({.bytes = 8, .count = 10}), std::span(padded)},
              strided(0, 8, 8, 10, {0, 1}));
  EXPECT_TRUE(has(padding, "local index 4294967295 or -1 (number 1 of 2 taken)")) << padding;
}

TEST(Coalesce, RefusesUnequalTotals) {
  const auto same_size = refused(OpKind::kWrite, strided(0, 8, 8, 10), strided(0, 8, 8, 9));
  EXPECT_TRUE(has(same_size, "80 bytes in 10 blocks, the remote one 72 in 9")) << same_size;
  const auto other = refused(OpKind::kRead, strided(0, 8, 8, 2, {0, 1}), list({{0, 17}}));
  EXPECT_TRUE(has(other, "16 bytes in 2 blocks, the remote one 17 in 1")) << other;
  const auto nothing = refused(OpKind::kRead, {}, {});
  EXPECT_TRUE(has(nothing, "the local side names no block")) << nothing;
}

TEST(Coalesce, RefusesABlockOutsideEveryPin) {
  const PinMap pins(
      {{.address = 0, .bytes = 20, .slot = 5}, {.address = 20, .bytes = 8, .slot = 6}});
  const auto across =
      refused(OpKind::kWrite, strided(0, 8, 8, 3, {0, 2}), strided(0, 8, 8, 2), pins);
  EXPECT_TRUE(has(across,
                  "local block 2 (number 1 of 2 taken) at 0x10, 8 bytes, is not inside one "
                  "pin: pin 5 ends at 0x14"))
      << across;
  for (const bool sizes_differ : {false, true}) {
    const Selection from = sizes_differ ? list({{0, 16}}) : strided(0, 8, 8, 2);
    const auto outside = refused(OpKind::kRead, from, strided(0x100, 16, 8, 2), everywhere(), pins);
    EXPECT_TRUE(has(outside, "remote block 0 (number 0 of 2 taken) at 0x100, 8 bytes, is not in "))
        << outside;
    EXPECT_TRUE(has(outside, "let the peer pin")) << outside;
  }
  EXPECT_EQ(coalesce(OpKind::kWrite, strided(0, 8, 8, 9), strided(0, 8, 8, 9), PinMap(), pins)
                .error()
                .code,
            Code::kDenied);
}

TEST(Coalesce, RefusesToWriteABlockTwiceButReadsItTwice) {
  for (const std::uint64_t count : {100ULL, 100'000'000ULL}) {  // uses the bitmap, then the sort
    const auto twice = strided(0x1000, 16, 8, count, {7, 3, 9, 3});
    const auto apart = strided(0x1000, 16, 8, count, {1, 2, 3, 4});
    const auto text = refused(OpKind::kWrite, apart, twice);
    EXPECT_TRUE(has(text, "remote block 3 at 0x1030 would be written twice: numbers 1 and 3"))
        << text;
    EXPECT_TRUE(has(refused(OpKind::kRead, twice, apart), "local block 3")) << count;
    EXPECT_EQ(refused(OpKind::kWrite, twice, apart), "planned");
    EXPECT_EQ(refused(OpKind::kRead, apart, twice), "planned");
    EXPECT_EQ(refused(OpKind::kWrite, apart, strided(0x1000, 16, 8, count, {7, 3, 9, 4})),
              "planned");
  }
}

// A selection of about `wanted` bytes below 64 KiB, in one of the three shapes of list.
Selection anySelection(Random& random, std::uint64_t wanted) {
  const std::uint64_t shape = random.below(3);
  const std::uint64_t bytes = 1 + random.below(9);
  std::vector<Run> runs;
  for (std::uint64_t at = random.below(50), sum = 0; sum < wanted;) {
    Run run{at, bytes, bytes, wanted / bytes + 1};
    if (shape != 0) run.bytes = run.stride = 1 + random.below(12);
    if (shape == 1) run.count = 1;
    if (shape == 2) run.count = 1 + random.below(5);
    run.stride += random.chance(0.5) ? random.below(6) : 0;
    runs.push_back(run);
    sum += run.bytes * run.count;
    at += run.stride * run.count + (random.chance(0.5) ? random.below(20) : 0);
  }
  for (std::size_t i = runs.size(); i > 1; --i) std::swap(runs[i - 1], runs[random.below(i)]);
  Selection out{*Blocks::of(runs), {}};
  if (random.chance(0.3)) return out;
  out.indices.resize(out.blocks.count());
  std::iota(out.indices.begin(), out.indices.end(), 0U);
  for (std::uint64_t swaps = random.below(out.indices.size() + 1); swaps != 0; --swaps)
    std::swap(out.indices[random.below(out.indices.size())],
              out.indices[random.below(out.indices.size())]);
  return out;
}

std::vector<std::uint64_t> bytesOf(const Selection& selection) {
  std::vector<std::uint64_t> out;
  const auto add = [&](const Extent& e) {
    for (std::uint64_t b = 0; b < e.bytes; ++b) out.push_back(e.address + b);
  };
  for (const std::uint32_t i : selection.indices) add(selection.blocks[i]);
  for (std::uint64_t i = 0; selection.indices.empty() && i < selection.blocks.count(); ++i)
    add(selection.blocks[i]);
  return out;
}

// Adds one block to the smaller selection, so that both name equally many bytes.
void level(Selection& a, Selection& b) {
  const std::uint64_t have[] = {bytesOf(a).size(), bytesOf(b).size()};
  if (have[0] == have[1]) return;
  Selection& small = have[0] < have[1] ? a : b;
  std::vector<Run> runs;
  for (std::size_t i = 0; i < small.blocks.runs(); ++i) runs.push_back(small.blocks.run(i));
  const std::uint64_t more = std::max(have[0], have[1]) - std::min(have[0], have[1]);
  runs.push_back({40'000, more, more, 1});
  if (!small.indices.empty())
    small.indices.push_back(static_cast<std::uint32_t>(small.blocks.count()));
  small.blocks = *Blocks::of(runs);
}

// Adjacent pins, cut at random places outside all blocks, and sometimes one more pin over some of
// them.
PinMap anyPins(Random& random, const Selection& over) {
  std::vector<bool> inside(65536, false);
  for (std::uint64_t i = 0; i < over.blocks.count(); ++i) {
    const Extent e = over.blocks[i];
    for (std::uint64_t b = 1; b < e.bytes; ++b) inside[e.address + b] = true;
  }
  std::vector<PinRange> pins;
  const bool cut = !random.chance(0.3);
  std::uint64_t begin = 0;
  for (std::uint64_t at = 0; cut; begin = at) {
    at += 1 + random.below(19);
    while (at < inside.size() && inside[at]) ++at;
    if (at >= inside.size()) break;
    pins.push_back({begin, at - begin, static_cast<std::uint32_t>(pins.size())});
  }
  pins.push_back({begin, inside.size() - begin, static_cast<std::uint32_t>(pins.size())});
  if (random.chance(0.3)) pins.push_back({random.below(200), 300, 1'000'000});
  return PinMap(std::move(pins));
}

using Moves = std::map<std::uint64_t, std::uint64_t>;  // remote byte → local byte

Moves movesOf(const std::vector<Op>& ops) {
  Moves out;
  for (const Op& op : ops)
    for (std::uint64_t b = 0; b < op.bytes; ++b)
      EXPECT_TRUE(out.emplace(op.remote + b, op.local + b).second) << "a byte is written twice";
  return out;
}

void expectInsidePins(const std::vector<Op>& ops, const PinMap& here, const PinMap& there) {
  const auto holds = [](const PinMap& pins, std::uint32_t slot, std::uint64_t at, std::uint64_t n) {
    return std::any_of(pins.ranges().begin(), pins.ranges().end(), [&](const PinRange& p) {
      return p.slot == slot && p.address <= at && at + n <= p.address + p.bytes;
    });
  };
  for (const Op& op : ops) {
    EXPECT_GT(op.bytes, 0U);
    EXPECT_TRUE(holds(here, op.local_pin, op.local, op.bytes));
    EXPECT_TRUE(holds(there, op.remote_pin, op.remote, op.bytes));
  }
}

// One case of the properties below: selections, pins and their plan, all from a seed.
struct Case {
  explicit Case(std::uint64_t seed) : random(seed) {
    const std::uint64_t wanted = 1 + random.below(400);
    local = anySelection(random, wanted);
    remote = random.chance(0.3) ? local : anySelection(random, wanted);
    level(local, remote);
    local_pins = anyPins(random, local);
    remote_pins = anyPins(random, remote);
    ops = planned(local, remote, local_pins, remote_pins);
  }
  Random random;
  Selection local, remote;
  PinMap local_pins, remote_pins;
  std::vector<Op> ops;
};

constexpr std::uint64_t kSeeds = 400;

// Runs one property over all seeds; the first seed that breaks it ends the run and is named.
void forEachSeed(void (*property)(Case&)) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Case one(seed);
    property(one);
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(PlanProperty, EveryByteExactlyOnceAndNoneOutside) {
  forEachSeed([](Case& c) {
    const auto from = bytesOf(c.local);
    const auto into = bytesOf(c.remote);
    Moves expected;
    for (std::size_t i = 0; i < from.size(); ++i) expected[into[i]] = from[i];
    EXPECT_EQ(movesOf(c.ops), expected);
    expectInsidePins(c.ops, c.local_pins, c.remote_pins);
  });
}

TEST(PlanProperty, APlanOfAPlanIsItself) {
  forEachSeed([](Case& c) {
    std::vector<Extent> from;
    std::vector<Extent> into;
    for (const Op& op : c.ops) {
      from.push_back({op.local, op.bytes});
      into.push_back({op.remote, op.bytes});
    }
    EXPECT_EQ(planned(list(from), list(into), c.local_pins, c.remote_pins), c.ops);
  });
}

TEST(PlanProperty, NeighboursThatCouldMergeHaveMerged) {
  forEachSeed([](Case& c) {
    for (std::size_t i = 1; i < c.ops.size(); ++i) {
      const Op& a = c.ops[i - 1];
      const Op& b = c.ops[i];
      const bool touch = a.local + a.bytes == b.local && a.remote + a.bytes == b.remote;
      EXPECT_FALSE(touch && c.local_pins.cover(a.local, a.bytes + b.bytes) != nullptr &&
                   c.remote_pins.cover(a.remote, a.bytes + b.bytes) != nullptr);
    }
  });
}

void shuffle(std::vector<std::uint32_t>& values, Random& random) {
  for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[random.below(i)]);
}

TEST(PlanProperty, TheOrderOfPairsChangesNothing) {
  forEachSeed([](Case& c) {
    const std::uint64_t count = 1 + c.random.below(60);
    const std::uint64_t bytes = 1 + c.random.below(8);
    const auto from = strided(0, bytes + c.random.below(2), bytes, count);
    const auto into = strided(9, bytes + c.random.below(2), bytes, count);
    std::vector<std::uint32_t> order(count);
    std::iota(order.begin(), order.end(), 0U);
    std::vector<std::uint32_t> partner = order;
    if (c.random.chance(0.8)) shuffle(partner, c.random);
    Moves moves[2];
    for (Moves& m : moves) {
      Selection a = from;
      Selection b = into;
      for (const std::uint32_t i : order) {
        a.indices.push_back(i);
        b.indices.push_back(partner[i]);
      }
      m = movesOf(planned(a, b));
      shuffle(order, c.random);
    }
    EXPECT_EQ(moves[0], moves[1]);
  });
}

Sliced sliced(std::vector<Op> ops, const Slicing& how) {
  std::uint64_t bytes = 0;
  for (const Op& op : ops) bytes += op.bytes;
  return slice({.ops = std::move(ops), .spans = {}, .bytes = bytes}, how);
}

std::vector<Op> opsOf(const Sliced& plan, const Slice& slice) {
  return {plan.ops.begin() + slice.first, plan.ops.begin() + slice.first + slice.ops};
}

// Expects every op in exactly one slice, in order, and the right totals in each slice.
void expectWhole(const Sliced& plan) {
  std::size_t next = 0;
  for (const Slice& slice : plan.slices) {
    EXPECT_EQ(slice.first, next);
    EXPECT_GT(slice.ops, 0U);
    std::uint64_t bytes = 0;
    for (const Op& op : opsOf(plan, slice)) bytes += op.bytes;
    EXPECT_EQ(slice.bytes, bytes);
    next += slice.ops;
  }
  EXPECT_EQ(next, plan.ops.size());
}

void expectCutsAligned(const std::vector<Op>& pieces, const std::vector<Op>& ops,
                       std::uint64_t align) {
  for (const Op& piece : pieces) {
    const auto whole = std::find_if(ops.begin(), ops.end(), [&](const Op& op) {
      return op.remote <= piece.remote && piece.remote < op.remote + op.bytes;
    });
    ASSERT_NE(whole, ops.end());
    EXPECT_EQ((piece.remote - whole->remote) % align, 0U);
  }
}

TEST(PlanProperty, SlicesKeepEveryByteAndAreOfBoundedSize) {
  forEachSeed([](Case& c) {
    Slicing how{.rails = 1 + c.random.below(6), .align = 1 + c.random.below(16)};
    how.min_chunk = how.align + c.random.below(200);
    how.least = 1 + c.random.below(300);
    how.most = 1 + c.random.below(600);
    const Sliced plan = sliced(c.ops, how);
    std::uint64_t total = 0;
    for (const Op& op : c.ops) total += op.bytes;
    expectWhole(plan);
    EXPECT_EQ(movesOf(plan.ops), movesOf(c.ops));
    expectCutsAligned(plan.ops, c.ops, how.align);
    const std::uint64_t parts =
        std::max<std::uint64_t>(1, std::min<std::uint64_t>(how.rails, total / how.min_chunk));
    const std::uint64_t least = std::max({how.least, how.min_chunk, how.align});
    if (parts == 1) {
      EXPECT_EQ(plan.slices.size(), c.ops.empty() ? 0U : 1U);
    } else if (total < 2 * parts * least) {
      EXPECT_LE(plan.slices.size(), parts);
      for (const Slice& one : plan.slices) EXPECT_LE(one.bytes, total / parts + 2 * how.align);
    } else {
      const std::uint64_t most = std::max({how.most, least, total / 2048});
      for (const Slice& one : plan.slices) EXPECT_LE(one.bytes, most + least + 2 * how.align);
      // The first slice is at most half of a fair share, so that no rail waits long for it.
      EXPECT_LE(plan.slices[0].bytes, std::max(total / parts / 2, least) + how.align);
    }
  });
}

TEST(Slice, AShortListGetsOnlyRailsThatPayOff) {
  constexpr std::uint64_t kKiB = 1024;
  const auto sizes = [](std::uint64_t bytes, const Slicing& how) {
    std::vector<std::uint64_t> out;
    for (const Slice& one : sliced({{0, 0, bytes, 0, 0}}, how).slices) out.push_back(one.bytes);
    return out;
  };
  using Sizes = std::vector<std::uint64_t>;
  EXPECT_EQ(sizes(31 * kKiB, {.rails = 4}), Sizes{31 * kKiB});
  EXPECT_EQ(sizes(32 * kKiB, {.rails = 4}), (Sizes{16 * kKiB, 16 * kKiB}));
  EXPECT_EQ(sizes(48 * kKiB, {.rails = 4}), (Sizes{16 * kKiB, 16 * kKiB, 16 * kKiB}));
  EXPECT_EQ(sizes(64 * kKiB, {.rails = 4}), Sizes(4, 16 * kKiB));
  EXPECT_EQ(sizes(256 * kKiB, {.rails = 4}), Sizes(4, 64 * kKiB));
  EXPECT_EQ(sizes(256 * kKiB, {.rails = 4, .min_chunk = 128 * kKiB}), Sizes(2, 128 * kKiB));
  EXPECT_EQ(sizes(8, {.rails = 0, .min_chunk = 0, .align = 0}), Sizes{8});
  EXPECT_EQ(sizes(16 * kMiB, {.rails = 1}), Sizes{16 * kMiB});
  EXPECT_TRUE(sliced({}, {.rails = 4}).slices.empty());
}

// Equal rails that take slices in turn get equally many bytes.
TEST(Slice, SizesComeInRoundsOfOneForEachRail) {
  for (const std::uint64_t bytes : {std::uint64_t{1} << 20U, std::uint64_t{10'000'000}, 64 * kMiB})
    for (const std::size_t rails : {2, 3, 4, 8}) {
      const Sliced plan = sliced({{0, 0, bytes, 0, 0}}, {.rails = rails});
      ASSERT_EQ(plan.slices.size() % rails, 0U) << bytes;
      std::vector<std::uint64_t> carried(rails);
      for (std::size_t i = 0; i < plan.slices.size(); ++i)
        carried[i % rails] += plan.slices[i].bytes;
      const auto [least, most] = std::minmax_element(carried.begin(), carried.end());
      EXPECT_LE(*most - *least, 4 * Slicing{}.align) << bytes << " over " << rails;
    }
}

TEST(Slice, SlicesOfALongListGetSmallerTowardsItsEnd) {
  const Sliced plan = sliced({{0, kMiB, 1024 * kMiB, 1, 2}}, {.rails = 4});
  EXPECT_EQ(plan.slices.front().bytes, 8 * kMiB);
  EXPECT_LT(plan.slices.back().bytes, 2 * 65536U);
  for (std::size_t i = 1; i + 1 < plan.slices.size(); ++i)
    EXPECT_LE(plan.slices[i].bytes, plan.slices[i - 1].bytes + 4096);
  EXPECT_EQ(plan.ops.back().local_pin, 1U);
  EXPECT_EQ(plan.ops.back().local + plan.ops.back().bytes, 1024 * kMiB);
  EXPECT_EQ(plan.ops.back().remote + plan.ops.back().bytes, 1025 * kMiB);
  // However long the list, it gets fewer than 4096 slices.
  EXPECT_LT(sliced({{0, 0, std::uint64_t{1} << 50U, 0, 0}}, {.rails = 64}).slices.size(), 4096U);
}

TEST(Requirement, ReadsEveryWord) {
  EXPECT_EQ(*parseRequirement(""), Requirement{});
  EXPECT_EQ(*parseRequirement(" rdma , not-tcp"), (Requirement{.rdma = true, .not_tcp = true}));
  EXPECT_EQ(*parseRequirement("no-staging"), Requirement{.no_staging = true});
  EXPECT_EQ(*parseRequirement("packed"), Requirement{.packed = true});
  EXPECT_EQ(*parseRequirement("same-host,backend:local"),
            (Requirement{.same_host = true, .backend = "local"}));
}

TEST(Requirement, RefusesOtherWordsAndListsTheGoodOnes) {
  for (const char* text : {"fast", "rdma,", ",rdma", "backend:", "RDMA", "rdma rdma"}) {
    const auto parsed = parseRequirement(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_TRUE(
        has(parsed.error().text(),
            "rdma, same-host, not-tcp, no-staging, gpu-direct, packed, encrypted or backend:NAME"))
        << text;
  }
  EXPECT_TRUE(has(parseRequirement("backend:a,backend:b").error().text(), "backend:a and"));
}

}  // namespace
}  // namespace viaduct::core
