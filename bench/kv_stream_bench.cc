// Fetches the KV cache of a request layer by layer, as a parcel, and with one read from each rank,
// in turns. Llama-3.1-8B, 8,192 tokens, blocks of 16 tokens in random order, TP 1 at the
// destination: 1 GiB. usage: kv_stream_bench BACKEND [ROUNDS [RANKS]]
#include <array>
#include <deque>

#include "harness/agents.h"

namespace {

using namespace viaduct;
using namespace viaduct::bench;

constexpr std::uint32_t kLayers = 32, kHeads = 8, kBlocks = 512;
constexpr const char* kRequest = "request";

struct Rank {
  std::uint32_t tp = 1, number = 0;
};

KvLayout layoutAt(std::uint64_t address, const Rank& rank) {
  std::vector<std::uint32_t> layers(kLayers);
  std::iota(layers.begin(), layers.end(), 0);
  const KvLayout layout{
      .groups = {{.caches = {{.layers = layers, .kv_heads = kHeads, .head_size = 128}}}},
      .order = KvOrder::kHnd,
      .tp = rank.tp,
      .rank = rank.number};
  return must(arrangeKv(layout, KvArrangement::kApart, address, kBlocks));
}
std::uint64_t bytesOf(const Rank& rank) { return kvExtent(layoutAt(0, rank)).bytes; }

Settings settingsOf(const std::string& name, const std::string& backend) {
  return {.name = name, .listen = {"127.0.0.1:0"}, .insecure = true, .backends = {backend}};
}

Indices sourceTable() { return shuffled(kBlocks, 1); }

// The times that the source measures for one request.
struct Published {
  double plan = 0;  // seconds
  Clock::time_point start = {}, posted = {};
};

// The ranks of the source, in one process. They publish a version for each number that they
// receive, and end when they receive 0.
class SourceRanks {
 public:
  SourceRanks(const std::string& backend, std::uint32_t tp, const Channel& destination) : tp_(tp) {
    for (std::uint32_t rank = 0; rank < tp; ++rank) {
      Target& target = ranks_.emplace_back(settingsOf(fmt::format("rank {}", rank), backend),
                                           bytesOf({tp, rank}));
      std::memset(target.memory.data(), static_cast<int>(rank + 1), target.memory.size());
      const auto parts = must(kvParts(layoutAt(target.here(), {tp, rank})));
      parts_.insert(parts_.end(), parts.begin(), parts.end());
      const auto card = target.agent.exportCard();
      destination.send(card);
      if (rank == 0) continue;
      owner_.push_back(must(target.agent.importCard(ranks_.front().agent.exportCard())));
      must(owner_.back().ready(kLong));
    }
  }
  void serve(const Channel& destination) {
    while (const auto version = destination.receiveValue<std::uint64_t>())
      publish(version, destination);
  }

 private:
  void publish(std::uint64_t version, const Channel& destination) {
    const auto begin = Clock::now();
    const std::array table{sourceTable()};
    std::vector<std::vector<PublishedPart>> pages;
    std::vector<PublishedParcel> parcels;
    for (std::uint32_t rank = 0; rank < tp_; ++rank) {
      pages.push_back(must(kvPages(layoutAt(ranks_[rank].here(), {tp_, rank}), table)));
      PublishOptions options{.version = version, .parts = parts_, .takers = 1};
      if (rank != 0) options.owner = owner_[rank - 1];
      parcels.push_back(must(ranks_[rank].agent.publish(kRequest, std::move(options))));
    }
    Published done{.plan = secondsBetween(begin, Clock::now())};
    destination.sendValue(true);
    destination.receiveValue<bool>();
    done.start = Clock::now();
    for (std::uint32_t layer = 0; layer < kLayers; ++layer)
      for (std::uint32_t rank = 0; rank < tp_; ++rank)
        must(parcels[rank].ready(std::move(pages[rank][layer])));
    done.posted = Clock::now();
    for (const PublishedParcel& parcel : parcels) must(parcel.wait(kLong));
    destination.sendValue(done);
  }

  const std::uint32_t tp_;
  std::deque<Target> ranks_;
  std::vector<Peer> owner_;  // rank 0 as a peer of each later rank
  std::vector<ParcelPart> parts_;
};

// In milliseconds.
struct Figures {
  const char* name;
  Samples plan = {}, post = {}, first = {}, all = {};
};

class Destination {
 public:
  Destination(const std::string& backend, std::uint32_t tp, Channel& source)
      : tp_(tp), source_(source), here_(settingsOf("destination", backend), bytesOf({})) {
    const KvLayout mine = layoutAt(here_.here(), {});
    for (std::uint32_t rank = 0; rank < tp; ++rank) {
      peers_.push_back(must(here_.agent.importCard(source.receive())));
      must(peers_.back().ready(kLong));
      const auto theirs = layoutAt(must(peers_.back().waitPin(kMemory, kLong)).address, {tp, rank});
      layers_.push_back(must(KvLayers::plan(theirs, mine)));
      reshards_.push_back(must(KvReshard::plan(theirs, mine)));
    }
  }
  void finish() const { source_.sendValue(std::uint64_t{0}); }

  void fetch(Figures* figures) {
    clear();
    source_.sendValue(++version_);
    source_.receiveValue<bool>();
    const auto begin = Clock::now();
    Indices in_part(kBlocks);
    std::iota(in_part.begin(), in_part.end(), 0U);
    const std::array blocks{KvBlocks{.source = in_part, .destination = table_}};
    FetchOptions options{.version = version_, .exact = true};
    for (const KvLayers& layers : layers_)
      for (PartInto& part : must(layers.into(blocks))) options.into.push_back(std::move(part));
    const ParcelFetch fetch = must(here_.agent.fetch(peers_.front(), kRequest, std::move(options)));
    const double plan = secondsBetween(begin, Clock::now());
    source_.sendValue(true);
    for (std::uint32_t rank = 0; rank < tp_; ++rank)
      must(fetch.waitPart({.rank = rank, .component = 0}, kLong));
    const auto first = Clock::now();
    must(fetch.wait(kLong));
    const auto all = Clock::now();
    const auto published = source_.receiveValue<Published>();
    check();
    if (figures == nullptr) return;
    figures->plan.add(1e3 * (plan + published.plan));
    figures->post.add(1e3 * secondsBetween(published.start, published.posted));
    figures->first.add(1e3 * secondsBetween(published.start, first));
    figures->all.add(1e3 * secondsBetween(published.start, all));
  }

  void read(Figures* figures) {
    clear();
    const auto begin = Clock::now();
    const std::array blocks{KvBlocks{.source = sourceTable(), .destination = table_}};
    std::vector<Transfer> transfers;
    for (std::uint32_t rank = 0; rank < tp_; ++rank) {
      const auto taken = must(reshards_[rank].select(blocks));
      transfers.push_back(
          must(here_.agent.plan(OpKind::kRead, peers_[rank], taken.destination, taken.source)));
    }
    const auto start = Clock::now();
    for (Transfer& transfer : transfers) must(transfer.post());
    const auto posted = Clock::now();
    for (Transfer& transfer : transfers) must(transfer.wait(kLong));
    const auto all = Clock::now();
    check();
    if (figures == nullptr) return;
    figures->plan.add(1e3 * secondsBetween(begin, start));
    figures->post.add(1e3 * secondsBetween(start, posted));
    figures->first.add(1e3 * secondsBetween(start, all));
    figures->all.add(1e3 * secondsBetween(start, all));
  }

 private:
  // Calls `visit(byte, rank)` for the first byte of each rank's heads in each page.
  template <class Visit>
  void forEachPiece(const Visit& visit) {
    const std::uint64_t piece = bytesOf({}) / kLayers / 2 / kBlocks / tp_;
    for (std::uint64_t at = 0; at < here_.memory.size(); at += piece)
      visit(here_.memory.data()[at], at / piece % tp_);
  }
  void clear() {
    forEachPiece([](std::byte& byte, std::uint64_t) { byte = std::byte{0}; });
  }
  void check() {
    here_.agent.poll();
    forEachPiece([](std::byte& byte, std::uint64_t rank) {
      if (std::to_integer<std::uint64_t>(byte) != rank + 1) die("a piece did not arrive");
    });
  }

  const std::uint32_t tp_;
  Channel& source_;
  Target here_;
  const Indices table_ = shuffled(kBlocks, 2);
  std::vector<Peer> peers_;
  std::vector<KvLayers> layers_;
  std::vector<KvReshard> reshards_;
  std::uint64_t version_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const Arguments given(argc, argv, "kv_stream_bench BACKEND [ROUNDS [RANKS]]");
  const std::string backend = given.text(0);
  const int rounds = given.number(1, 15);
  const auto tp = given.number(2, 1U);
  Child child([&](Channel& parent) { SourceRanks(backend, tp, parent).serve(parent); });
  Destination destination(backend, tp, child);
  Figures layered{"32 layers"}, one{"one read"};
  for (int i = 0; i <= rounds; ++i) {
    destination.fetch(i == 0 ? nullptr : &layered);
    destination.read(i == 0 ? nullptr : &one);
  }
  destination.finish();
  fmt::print("{}: {} MiB from {} ranks, {} rounds; medians in ms\n\n", backend, bytesOf({}) >> 20U,
             tp, rounds);
  Table table({words("", 12), figure("plan", 3), figure("post", 3), figure("first usable", 2),
               figure("all", 2)});
  for (const Figures* way : {&layered, &one})
    table.row(way->name, way->plan, way->post, way->first, way->all);
  fmt::print("\nratio of the total times, median of pairs: {:.3f}\n",
             (layered.all / one.all).median());
}
