// Runs one hot path a given number of times on one thread, to count instructions with callgrind
// (bench/instructions.sh). The count does not depend on the machine's load.
#include <array>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

#include "base/lists.h"
#include "harness/agents.h"

namespace {

using namespace viaduct;
using namespace viaduct::bench;

constexpr std::uint64_t kStride = 8192, kBlocks = 2048;

// Two agents of one process; the same thread makes progress on both.
std::shared_ptr<Pair> pairOver(const char* backend) {
  Settings settings;
  settings.backends = {backend};
  settings.ofi_provider = "shm";              // libfabric's provider with the fewest instructions
  settings.detect = std::chrono::minutes(1);  // callgrind is slow, and heartbeats shall not count
  settings.copy_threads = 1;
  return std::make_shared<Pair>(settings, kStride * kBlocks);
}

std::function<void()> mover(const char* backend, std::uint64_t bytes, std::uint32_t count) {
  auto pair = pairOver(backend);
  Indices take(count), put(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    take[i] = (i * 7919U) % kBlocks;
    put[i] = (i * 6151U) % kBlocks;
  }
  auto transfer = std::make_shared<Transfer>(pair->source.plan(
      OpKind::kWrite, {.stride = kStride, .bytes = bytes, .count = kBlocks}, {}, take, put));
  return [pair, transfer] {
    must(transfer->post());
    while (transfer->poll() == TransferState::kRunning) pair->target.agent.poll();
  };
}

std::function<void()> noter() {
  return [pair = pairOver("local")] {
    Agent& target = pair->target.agent;
    must(pair->source.peer.note("12345678"));
    while (!target.takeNote()) target.poll();
  };
}

// Moves 64 chunks of 64 KiB, with agents whose own threads make progress. kBoth: from one agent's
// memory to another agent's file. Otherwise one stage alone moves them as 64 blocks.
enum class Stages { kMove, kStore, kBoth };
class Chunks {
 public:
  explicit Chunks(Stages stages) {
    const bool store = stages == Stages::kStore;
    must(peer_.ready(kLong));
    must(self_.ready(kLong));
    const PinInfo there =
        must((store ? self_ : peer_).waitPin(stages == Stages::kMove ? "memory" : "file", kLong));
    // Blocks that lie apart, so that a stage alone has as many pieces as it has chunks.
    Indices order;
    if (stages != Stages::kBoth)
      for (std::uint32_t i = kChunks; i-- > 0;) order.push_back(i);
    const auto of = [&](const PinInfo& pin) {
      return blocks({.base = pin.address, .bytes = kChunk, .count = kChunks}, order);
    };
    transfer_.emplace(must((store ? b_ : a_)
                               .plan(OpKind::kWrite, store ? self_ : peer_,
                                     of((store ? theirs_ : ours_).info()), of(there))));
  }
  Chunks(const Chunks&) = delete;
  Chunks& operator=(const Chunks&) = delete;
  ~Chunks() { std::filesystem::remove(path_); }
  void move() { bench::postAndWait(*transfer_); }

 private:
  static constexpr std::uint64_t kChunk = 64 << 10, kChunks = 64, kBytes = kChunks * kChunk;
  static Agent open(const char* name) {
    return must(Agent::open({.name = name, .backends = {"tcp", "file"}, .staging_chunk = kChunk}));
  }

  const std::string path_ = std::filesystem::temp_directory_path() / "viaduct-hot-path";
  Agent a_ = open("a"), b_ = open("b");
  Pin ours_ = must(a_.allocate(kBytes));
  Pin theirs_ = must(b_.allocate(kBytes, {.label = "memory"}));
  Pin file_ = must(b_.pin(Segment::file(path_, {.bytes = kBytes, .create = true}), "file"));
  Peer peer_ = must(a_.importCard(b_.exportCard())), self_ = must(b_.self());
  std::optional<Transfer> transfer_;
};

std::function<void()> chunks(Stages stages) {
  return [chunks = std::make_shared<Chunks>(stages)] { chunks->move(); };
}

struct HotPath {
  std::string_view name;
  std::function<void()> (*prepare)();
};

const std::array kPaths{
    HotPath{"local-8", [] { return mover("local", 8, 1); }},
    HotPath{"local-64x64", [] { return mover("local", 64, 64); }},
    HotPath{"local-1024x64", [] { return mover("local", 64, 1024); }},
    HotPath{"tcp-8", [] { return mover("tcp", 8, 1); }},
    HotPath{"tcp-64x64", [] { return mover("tcp", 64, 64); }},
    HotPath{"tcp-1024x64", [] { return mover("tcp", 64, 1024); }},
    HotPath{"ofi-8", [] { return mover("ofi", 8, 1); }},
    HotPath{"ofi-64x64", [] { return mover("ofi", 64, 64); }},
    HotPath{"ofi-1024x64", [] { return mover("ofi", 64, 1024); }},
    HotPath{"move-64x64K", [] { return chunks(Stages::kMove); }},
    HotPath{"store-64x64K", [] { return chunks(Stages::kStore); }},
    HotPath{"staged-64x64K", [] { return chunks(Stages::kBoth); }},
    HotPath{"note", noter},
};

}  // namespace

int main(int argc, char** argv) {
  const Arguments given(argc, argv, "hot_paths PATH TIMES");
  const auto* const path = base::firstWith(kPaths, &HotPath::name, given.text(0));
  if (path == nullptr) {
    fmt::print(stderr, "paths:");
    for (const HotPath& known : kPaths) fmt::print(stderr, " {}", known.name);
    fmt::print(stderr, "\n");
    given.refuse();
  }
  const auto run = path->prepare();
  for (unsigned i = 0, times = given.number(1, 0U); i < times; ++i) run();
}
