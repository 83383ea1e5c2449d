#include "measure/workload/kv_cells.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace viaduct::measure {
namespace {

using Pool = std::vector<std::byte>;

KvPoint pointOf(const char* model, KvEnd source, KvEnd destination, std::uint32_t tokens = 100) {
  const auto made = completed({.model = model,
                               .tokens = tokens,
                               .requests = 2,
                               .sets = 2,
                               .source = source,
                               .destination = destination},
                              1.5);
  EXPECT_TRUE(made) << (made ? "" : made.error().text());
  return made ? *made : KvPoint{};
}

std::byte* at(std::uint64_t address) {
  return reinterpret_cast<std::byte*>(address);  // NOLINT: a selection holds addresses
}

// Copies piece by piece, as a transfer of these selections does. Piece `wrong` is written where the
// next piece belongs.
void copy(const KvSelections& both, std::size_t wrong) {
  const auto extent = [](const Selection& side, std::size_t i) {
    return side.blocks[side.indices.empty() ? i : side.indices[i]];
  };
  const auto count = [](const Selection& side) {
    return side.indices.empty() ? side.blocks.count() : side.indices.size();
  };
  ASSERT_EQ(count(both.source), count(both.destination));
  for (std::size_t i = 0; i < count(both.source); ++i) {
    const Extent from = extent(both.source, i),
                 to = extent(both.destination, i == wrong ? i + 1 : i);
    ASSERT_EQ(from.bytes, to.bytes);
    std::memcpy(at(to.address), at(from.address), from.bytes);
  }
}

class Moved {
 public:
  explicit Moved(const KvPoint& point, std::size_t wrong = ~std::size_t{0})
      : cells_(point),
        contents_(cells_.pattern(7)),
        source_(point.source.bytes),
        destination_(point.destination.bytes) {
    const auto sides = KvSides::make(point, reinterpret_cast<std::uintptr_t>(source_.data()),
                                     reinterpret_cast<std::uintptr_t>(destination_.data()));
    EXPECT_TRUE(sides);
    for (std::uint64_t set = 0; set < point.sets; ++set) {
      EXPECT_TRUE(contents_.fill(list(KvSide::kSource, source_, 3, set)));
      for (std::uint32_t request = 0; request < point.requests; ++request)
        copy(*sides->of(set, request), wrong);
    }
  }
  Wrong wrong(bool all, std::uint64_t epoch = 3) {
    for (std::uint64_t set = 0; set < 2; ++set)
      if (auto found = *contents_.verify(list(KvSide::kDestination, destination_, epoch, set),
                                         all ? Verified::kFull : Verified::kSampled))
        return found;
    return std::nullopt;
  }
  std::uint64_t checkedWords() const { return contents_.checkedWords(); }
  Pool& destination() { return destination_; }

 private:
  CellList list(KvSide side, Pool& pool, std::uint64_t epoch, std::uint64_t set) {
    return [=, this, &pool](const CellVisit& visit) {
      return cells_.each(side, pool, epoch, set, visit);
    };
  }

  const KvCells cells_;
  const Contents contents_;
  Pool source_, destination_;
};

struct Case {
  const char* model;
  KvEnd source, destination;
};

TEST(KvCells, AcceptsEveryReshard) {
  using enum KvOrder;
  using enum KvArrangement;
  const Case cases[] = {
      {"Llama-3.1-8B", {.block = 16}, {.block = 16}},
      {"Llama-3.1-8B",
       {.tp = 4, .block = 16, .order = kHnd},
       {.tp = 8, .block = 64, .order = kHnd}},
      {"Llama-3.1-8B", {.tp = 8, .block = 64}, {.tp = 4, .block = 16, .arrangement = kTogether}},
      {"gpt-oss-20b", {.block = 16}, {.block = 48, .arrangement = kRows}},
      {"DeepSeek-V3.2", {.block = 16}, {.tp = 2, .block = 32}},
      {"DeepSeek-V4-Pro", {.arrangement = kRows}, {.arrangement = kRows}},
  };
  for (const Case& one : cases) {
    Moved moved(pointOf(one.model, one.source, one.destination));
    for (const bool all : {false, true})
      EXPECT_EQ(moved.wrong(all), std::nullopt)
          << one.model << " " << moved.wrong(all).value_or("");
    EXPECT_GT(moved.checkedWords(), 0U);
  }
}

TEST(KvCells, FindsAPieceThatWentToAWrongPlace) {
  const KvPoint point = pointOf("Llama-3.1-8B", {.tp = 4, .block = 16, .order = KvOrder::kHnd},
                                {.tp = 8, .block = 64, .order = KvOrder::kHnd});
  Moved moved(point, 5);
  ASSERT_TRUE(moved.wrong(true));
  // A sample looks at each page, and a page of 64 tokens has four such pieces.
  Moved whole(pointOf("Llama-3.1-8B", {.block = 16}, {.block = 16}), 5);
  ASSERT_TRUE(whole.wrong(false));
  EXPECT_NE(whole.wrong(false)->find("layer"), std::string::npos) << *whole.wrong(false);
}

TEST(KvCells, FindsStaleAndMissingWords) {
  const KvPoint point = pointOf("Qwen3-8B", {.block = 16}, {.block = 16});
  Moved moved(point);
  EXPECT_TRUE(moved.wrong(false, 4));
  std::fill(moved.destination().begin(), moved.destination().end(), std::byte{0});
  EXPECT_TRUE(moved.wrong(false));
}

TEST(KvCells, ChecksABulkPointFromItsFirstToItsLastWord) {
  KvPoint point = pointOf("Llama-3.1-8B", {.block = 16}, {.block = 16});
  point.bulk = true;
  Moved moved(point);
  EXPECT_EQ(moved.wrong(false), std::nullopt);
  EXPECT_EQ(moved.wrong(true), std::nullopt);
  moved.destination()[point.request_bytes - 1] ^= std::byte{1};
  EXPECT_TRUE(moved.wrong(false));
}

}  // namespace
}  // namespace viaduct::measure
