// The cost of protecting data over tcp: the rates of the libraries on one core, and transfers at
// each level in turns, with the floor of the two highest. The target is another process:
// docs/measured/privacy.md.
//   privacy_bench [ROUNDS [MILLISECONDS-A-TURN]]
#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "bare_records.h"
#include "base/net/aead.h"
#include "base/net/crypto.h"
#include "base/net/record_keys.h"
#include "harness/agents.h"
#include "harness/program.h"

namespace {

using namespace viaduct;
using namespace viaduct::bench;

struct Shape {
  const char* name;
  std::uint64_t bytes, count;
};
constexpr std::array kShapes{Shape{"1 x 8 B", 8, 1}, Shape{"64 x 4 KiB", 4 << 10, 64},
                             Shape{"64 x 64 KiB", 64 << 10, 64}, Shape{"1 x 64 MiB", 64 << 20, 1}};
constexpr auto kSeal = base::AeadUse::kSeal;
constexpr std::uint64_t kMemoryBytes = 256ULL << 20;

struct Level {
  const char* name;
  Privacy privacy;
};
// The other levels are compared with the first level.
constexpr std::array kLevels{Level{"off", Privacy::kOff}, Level{"frames", Privacy::kFrames},
                             Level{"integrity", Privacy::kIntegrity},
                             Level{"encrypted", Privacy::kEncrypted}};

// Sockets without agents, see bare_records.h.
constexpr std::array kFloors{"bare integrity", "bare encrypted"};

Settings settingsOf(const Level& level) { return {.backends = {"tcp"}, .privacy = level.privacy}; }

// Agents at one level.
struct Ends {
  explicit Ends(const Level& level)
      : target(settingsOf(level), kMemoryBytes),
        source(settingsOf(level), kMemoryBytes, target.card) {}
  TargetProcess target;
  Source source;
};

// Measures one library with one record size.
void measureLibrary(Table& table, base::AeadKind kind, bool fast, std::size_t bytes, int rounds,
                    Duration turn) {
  const auto make = [&](base::AeadUse use) {
    auto aead = fast ? base::makeIpsecAead() : must(base::makeCryptoAead(kind, use));
    if (!aead->useKey(base::Key{1})) die("the key is refused");
    return aead;
  };
  const auto sealer = make(base::AeadUse::kSeal), opener = make(base::AeadUse::kOpen);
  std::vector<std::byte> text(bytes, std::byte{7}), sealed(bytes), opened(bytes), tag(16), mac(16);
  if (!sealer->seal({}, {}, text, sealed.data(), tag.data()) ||
      !sealer->seal({}, text, {}, nullptr, mac.data()))
    die("a record could not be sealed");
  std::array<Samples, 3> times;
  for (int round = 0; round < rounds; ++round) {
    bool good = true;
    times[0].add(secondsPerCall(
        turn, [&] { good &= sealer->seal({}, {}, text, sealed.data(), tag.data()); }));
    times[1].add(secondsPerCall(
        turn, [&] { good &= opener->open({}, {}, sealed, opened.data(), tag.data()); }));
    times[2].add(
        secondsPerCall(turn, [&] { good &= opener->open({}, text, {}, nullptr, mac.data()); }));
    if (!good) die("a record is wrong");
  }
  const auto size = static_cast<double>(bytes) / 1e9;
  const auto nanoseconds = [](const Samples& of) { return 1e9 * of.median(); };
  table.row(kind == base::AeadKind::kAesGcm ? "AES-256-GCM" : "ChaCha20-Poly1305",
            std::string(sealer->library()), std::to_string(bytes), nanoseconds(times[0]),
            size / times[0].median(), nanoseconds(times[1]), size / times[1].median(),
            nanoseconds(times[2]), size / times[2].median());
}

void measureLibraries(int rounds, Duration turn) {
  Table table({words("cipher", 18), words("library", 12), words("bytes", 6), figure("seal ns", 0),
               figure("GB/s", 2), figure("open ns", 0), figure("GB/s", 2), figure("MAC ns", 0),
               figure("GB/s", 2)});
  for (const std::size_t bytes : {64U, 16384U}) {
    measureLibrary(table, base::AeadKind::kAesGcm, false, bytes, rounds, turn);
    if (base::makeIpsecAead())
      measureLibrary(table, base::AeadKind::kAesGcm, true, bytes, rounds, turn);
    measureLibrary(table, base::AeadKind::kChaCha, false, bytes, rounds, turn);
  }
}

// The check of a frame: an HMAC as at a meeting place, and encryption as in a session. `timed` adds
// the estimate of the time that sealing takes.
void measureFrames(int rounds, Duration turn) {
  Table table({words("frame of", 8), spread("HMAC ns", 0), spread("encrypted ns", 0),
               spread("timed ns", 0), spread("libcrypto ns", 0)});
  const base::Hmac hmac(base::Key{1});
  base::SealingTime time;
  const auto keysWith = [](std::unique_ptr<base::Aead> aead, base::SealingTime* timing) {
    return must(base::RecordKeys::open(std::move(aead), base::Key{1}, base::kBlocksPerKey, timing));
  };
  const auto make = [] { return must(base::makeAead(base::AeadKind::kAesGcm, kSeal)); };
  const std::array keys{
      keysWith(make(), nullptr), keysWith(make(), &time),
      keysWith(must(base::makeCryptoAead(base::AeadKind::kAesGcm, kSeal)), nullptr)};
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{64}, std::size_t{1024}}) {
    std::vector<std::byte> head(24), text(bytes), tag(16);
    std::array<Samples, 4> times;
    base::Sha256Digest digest{};
    bool good = true;
    for (int round = 0; round < rounds; ++round) {
      times[0].add(1e9 * secondsPerCall(turn, [&] { digest = hmac.of({head, text}); }));
      for (std::size_t i = 0; i < keys.size(); ++i)
        times[i + 1].add(1e9 * secondsPerCall(turn, [&] {
                           good &= keys[i]->seal(head, text, text.data(), tag.data());
                         }));
    }
    if (!good || digest == base::Sha256Digest{}) die("a frame could not be sealed");
    table.row(std::to_string(bytes) + " B", times[0], times[1], times[2], times[3]);
  }
}

void measureTransfers(int rounds, Duration turn) {
  std::vector<std::unique_ptr<Ends>> ends;
  for (const Level& level : kLevels) ends.push_back(std::make_unique<Ends>(level));
  Table table({words("transfer", 12), words("level", 14), spread("us", 2), figure("GB/s", 3),
               spread("of off", 3), figure("us more", 2)});
  for (const Shape& shape : kShapes) {
    std::vector<Transfer> transfers;
    for (const auto& one : ends)
      transfers.push_back(one->source.plan(
          OpKind::kWrite, {.stride = 2 * shape.bytes, .bytes = shape.bytes, .count = shape.count}));
    BareRecords proven(shape.bytes, shape.count, false), encrypted(shape.bytes, shape.count, true);
    constexpr std::size_t kAll = kLevels.size() + kFloors.size();
    std::array<Samples, kAll> times;
    for (int round = -2; round < rounds; ++round)
      for (std::size_t i = 0; i < kAll; ++i) {
        const double took = secondsPerCall(turn, [&] {
          if (i < kLevels.size())
            postAndPoll(transfers[i]);
          else
            (i == kLevels.size() ? proven : encrypted).write();
        });
        if (round >= 0) times[i].add(1e6 * took);
      }
    const auto bytes = static_cast<double>(shape.bytes * shape.count) / 1e3;
    for (std::size_t i = 0; i < kAll; ++i)
      table.row(shape.name, i < kLevels.size() ? kLevels[i].name : kFloors[i - kLevels.size()],
                times[i], bytes / times[i].median(), times[i] / times[0],
                times[i].median() - times[0].median());
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments given(argc, argv, "privacy_bench [ROUNDS [MILLISECONDS-A-TURN]]");
  const int rounds = given.number(0, 15);
  const Duration turn = std::chrono::milliseconds(given.number(1, 20));
  measureLibraries(std::min(rounds, 5), turn);
  measureFrames(rounds, turn);
  measureTransfers(rounds, turn);
}
