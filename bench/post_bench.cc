// The time of Transfer::post(), and the time until the transfer has ended. A thread posts alone, or
// beside another thread that moves large blocks through the same agent. The target is another
// process: docs/measured/waiting.md.   post_bench [ROUNDS [BACKEND...]]
#include <array>
#include <optional>
#include <thread>

#include "harness/agents.h"
#include "harness/beside.h"

namespace {

using namespace viaduct;
using namespace viaduct::bench;
using namespace std::chrono_literals;

constexpr std::uint64_t kHalf = 256ULL << 20;  // of the memory, for each of the two threads

struct Shape {
  const char* name;
  std::uint64_t bytes;
  std::uint64_t count;
};
constexpr std::array kShapes{Shape{"1 x 4 KiB", 4 << 10, 1},
                             Shape{"32,768 x 4 KiB", 4 << 10, 32768},
                             Shape{"1 x 128 MiB", 128 << 20, 1}};

enum class Other : std::uint8_t { kNone, kWaits, kSleeps };
// The posting thread waits for its transfer, or only looks at the transfer's state every 20 us.
struct Situation {
  const char* name;
  bool waits;
  Other other;
};
constexpr std::array kSituations{
    Situation{"post, wait", true, Other::kNone}, Situation{"post, sleep", false, Other::kNone},
    Situation{"beside a thread that posts and waits", true, Other::kWaits},
    Situation{"beside a thread that posts and sleeps", true, Other::kSleeps}};

Transfer plan(Source& source, const Shape& shape, std::uint64_t offset) {
  return source.plan(
      OpKind::kWrite,
      {.base = offset, .stride = 2 * shape.bytes, .bytes = shape.bytes, .count = shape.count});
}

void end(Transfer& transfer, bool waits) {
  if (waits) must(transfer.wait(kLong));
  while (transfer.state() == TransferState::kRunning) std::this_thread::sleep_for(20us);
}

void measure(Table& table, Source& source, const std::string& backend, const Situation& situation,
             int rounds) {
  for (const Shape& shape : kShapes) {
    Transfer large = plan(source, kShapes.back(), kHalf);
    std::optional<Beside> other;
    if (situation.other != Other::kNone)
      other.emplace(
          [&] {
            must(large.post());
            end(large, situation.other == Other::kWaits);
          },
          1);
    Transfer transfer = plan(source, shape, 0);
    Samples posted, all;
    for (int i = -1; i < rounds; ++i) {
      std::this_thread::sleep_for(2ms);  // the progress thread no longer expects this thread back
      const auto begun = Clock::now();
      must(transfer.post());
      const auto returned = Clock::now();
      end(transfer, situation.waits);
      if (i < 0) continue;
      posted.add(1e6 * secondsBetween(begun, returned));
      all.add(1e6 * secondsSince(begun));
    }
    table.row(backend, situation.name, shape.name, posted, posted.most(), all);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments given(argc, argv, "post_bench [ROUNDS [BACKEND...]]");
  Table table({words("", 6), words("", 38), words("us", 14), figure("post", 1, 10),
               figure("longest", 1, 10), figure("all", 1, 10)});
  for (const std::string& backend : given.from(1, {"tcp", "local"})) {
    const Settings settings{.backends = {backend}};
    const TargetProcess target(settings, 2 * kHalf);
    Source source(settings, 2 * kHalf, target.card);
    for (const Situation& situation : kSituations)
      measure(table, source, backend, situation, given.number(0, 31));
  }
}
