// Runs one hot path a given number of times on one thread, to count instructions with callgrind
// (bench/instructions.sh). The count does not depend on the machine's load.
#include <fmt/format.h>
#include <viaduct/viaduct.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace viaduct;
using namespace std::chrono_literals;

// Ends the program on an error, because the count would mean nothing then.
template <class T>
T must(Result<T> result) {
  if (result) return *std::move(result);
  fmt::print(stderr, "{}\n", result.error().text());
  std::exit(1);
}

// Two agents of one process; the same thread makes progress on both.
class Pair {
 public:
  explicit Pair(const char* backend)
      : a_(open("a", backend)),
        b_(open("b", backend)),
        here_(must(a_.allocate(kBytes, {.label = "here"}))),
        there_(must(b_.allocate(kBytes, {.label = "there"}))),
        peer_(must(a_.importCard(b_.exportCard()))) {
    must(peer_.ready(10s));
    must(peer_.waitPin("there", 10s));
  }

  Transfer blocks(std::uint64_t bytes, std::uint32_t count) {
    std::vector<std::uint32_t> take(count), put(count);
    for (std::uint32_t i = 0; i < count; ++i) {
      take[i] = (i * 7919U) % kBlocks;
      put[i] = (i * 6151U) % kBlocks;
    }
    return must(
        a_.plan(OpKind::kWrite, peer_,
                {*Blocks::strided(
                     {.base = start(here_), .stride = kStride, .bytes = bytes, .count = kBlocks}),
                 take},
                {*Blocks::strided(
                     {.base = start(there_), .stride = kStride, .bytes = bytes, .count = kBlocks}),
                 put}));
  }
  void move(Transfer& transfer) {
    must(transfer.post());
    while (transfer.poll() == TransferState::kRunning) b_.poll();
  }
  void note() {
    must(peer_.note("12345678"));
    while (!b_.takeNote()) b_.poll();
  }

 private:
  static constexpr std::uint64_t kStride = 8192, kBlocks = 2048, kBytes = kStride * kBlocks;
  static std::uint64_t start(const Pin& pin) { return pin.info().address; }
  static Agent open(const char* name, const char* backend) {
    Settings settings;
    settings.name = name;
    settings.backends = {backend};
    settings.ofi_provider = "shm";  // libfabric's provider with the fewest instructions
    settings.detect = 60s;          // callgrind is slow, and heartbeats shall not count
    settings.copy_threads = 1;
    return must(Agent::open(settings));
  }

  Agent a_, b_;
  Pin here_, there_;
  Peer peer_;
};

std::function<void()> mover(const char* backend, std::uint64_t bytes, std::uint32_t blocks) {
  auto pair = std::make_shared<Pair>(backend);
  auto transfer = std::make_shared<Transfer>(pair->blocks(bytes, blocks));
  return [pair, transfer] { pair->move(*transfer); };
}

// Moves 64 chunks of 64 KiB, with agents whose own threads make progress. Both stages: from one
// agent's memory to another one's file. Otherwise one stage alone, as 64 blocks.
enum class Stages { kMove, kStore, kBoth };
class Chunks {
 public:
  explicit Chunks(Stages stages) {
    const bool store = stages == Stages::kStore;
    must(peer_.ready(10s));
    must(self_.ready(10s));
    const PinInfo there =
        must((store ? self_ : peer_).waitPin(stages == Stages::kMove ? "memory" : "file", 10s));
    const auto blocks = [&](const PinInfo& pin) {
      // Blocks that lie apart, so that a stage alone has as many pieces as it has chunks.
      Selection out{*Blocks::strided({.base = pin.address, .bytes = kChunk, .count = kChunks})};
      if (stages != Stages::kBoth)
        for (std::uint32_t i = kChunks; i-- > 0;) out.indices.push_back(i);
      return out;
    };
    Agent& agent = store ? b_ : a_;
    transfer_.emplace(must(agent.plan(OpKind::kWrite, store ? self_ : peer_,
                                      blocks((store ? theirs_ : ours_).info()), blocks(there))));
  }
  Chunks(const Chunks&) = delete;
  Chunks& operator=(const Chunks&) = delete;
  ~Chunks() { std::filesystem::remove(path_); }
  void move() {
    must(transfer_->post());
    must(transfer_->wait());
  }

 private:
  static constexpr std::uint64_t kChunk = 64 << 10, kChunks = 64, kBytes = kChunks * kChunk;
  static Agent open(const char* name) {
    Settings settings;
    settings.name = name;
    settings.backends = {"tcp", "file"};
    settings.staging_chunk = kChunk;
    return must(Agent::open(settings));
  }

  const std::string path_ = std::filesystem::temp_directory_path() / "viaduct-hot-path";
  Agent a_ = open("a"), b_ = open("b");
  Pin ours_ = must(a_.allocate(kBytes)), theirs_ = must(b_.allocate(kBytes, {.label = "memory"}));
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
    HotPath{"note",
            []() -> std::function<void()> {
              return [pair = std::make_shared<Pair>("local")] { pair->note(); };
            }},
};

}  // namespace

int main(int argc, char** argv) {
  const std::string_view name = argc == 3 ? argv[1] : "";
  const auto* path = std::find_if(kPaths.begin(), kPaths.end(),
                                  [&](const HotPath& known) { return known.name == name; });
  unsigned times = 0;
  if (path == kPaths.end() ||
      std::from_chars(argv[2], argv[2] + std::char_traits<char>::length(argv[2]), times).ec !=
          std::errc{}) {
    fmt::print(stderr, "usage: hot_paths PATH TIMES\npaths:");
    for (const HotPath& known : kPaths) fmt::print(stderr, " {}", known.name);
    fmt::print(stderr, "\n");
    return 2;
  }
  const auto run = path->prepare();
  for (unsigned i = 0; i < times; ++i) run();
  return 0;
}
