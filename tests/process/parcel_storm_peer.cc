// A process that publishes and fetches its share of a storm of parcels, and may be stopped and
// killed at any instant. usage: parcel_storm_peer NUMBER PROCESSES BACKEND DETECT_MS SEED. It
// prints its card. Then it answers each line:
//   meet CARD...         connects to these agents: "met"
//   ready                all known peers are ready: "ready"
//   round FIRST COUNT    the parcels of these numbers: "ends NUMBER:OUTCOME:RANKS ..."
//   kept                 leases that are live, and resident KiB: "kept LEASES KIB"
// A line "violation: ..." says which promise was broken.
#include <unistd.h>
#include <viaduct/viaduct.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "process/parcel_storm.h"
#include "process/words.h"
#include "support/bytes.h"

namespace {

using namespace viaduct;
using namespace std::chrono_literals;
using viaduct::testing::StormParcel;
using Words = std::vector<std::string>;

constexpr std::byte kUnused{0xEE};
constexpr auto kRound = 10s;  // for its fetches
constexpr auto kTakers = 1s;  // for the groups that take its parcels, after that

std::string nameOf(std::size_t process) { return "storm" + std::to_string(process); }
void violated(const std::string& what) { std::cout << "violation: " << what << std::endl; }

class StormPeer {
 public:
  StormPeer(std::size_t self, std::size_t processes, const Settings& settings, std::uint64_t seed)
      : self_(self), processes_(processes), seed_(seed), agent_(*Agent::open(settings)) {}

  std::string card() const { return viaduct::testing::toHex(agent_.exportCard()); }

  std::string answer(const Words& in) {
    if (in.at(0) == "meet") {
      for (std::size_t i = 1; i < in.size(); ++i)
        if (!agent_.importCard(viaduct::testing::fromHex(in[i]))) violated("a card is refused");
      return "met";
    }
    if (in[0] == "ready") return ready();
    if (in[0] == "kept") return kept();
    return round(std::stoull(in.at(1)), std::stoull(in.at(2)));
  }

 private:
  struct Published {
    StormParcel of;
    std::size_t slot = 0;
    std::optional<PublishedParcel> parcel = {};
    std::shared_ptr<std::atomic<int>> ends = std::make_shared<std::atomic<int>>(0);
  };
  struct Fetched {
    StormParcel of;
    std::size_t slot = 0;
    std::optional<ParcelFetch> fetch = {};
    std::shared_ptr<std::atomic<int>> ends = std::make_shared<std::atomic<int>>(0);
  };

  std::string ready() const {
    for (std::size_t process = 0; process < processes_; ++process) {
      if (process == self_) continue;
      const auto until = Clock::now() + 60s;
      Status there = Ok{};
      do {
        const auto peer = agent_.peer(nameOf(process));
        there = peer ? peer->ready(100ms) : Status(peer.error());
      } while (!there && Clock::now() < until);
      if (!there) violated("a peer does not come back: " + there.error().text());
    }
    return "ready";
  }

  // Leases end soon after a round, at the latest with the grace of a session.
  std::string kept() {
    const auto until = Clock::now() + 60s;
    const auto live = [&] {
      const Statistics now = agent_.statistics();
      return now.lent.live + now.borrowed.live;
    };
    while (live() != 0 && Clock::now() < until) agent_.poll();
    std::ifstream statm("/proc/self/statm");
    long size = 0, resident = 0;
    statm >> size >> resident;
    return "kept " + std::to_string(live()) + " " +
           std::to_string(resident * (::sysconf(_SC_PAGESIZE) / 1024));
  }

  void makeRoom(std::size_t parcels) {
    const std::uint64_t bytes = parcels * viaduct::testing::kStormParts * kBlock;
    if (source_ && source_->size() >= bytes) return;
    source_.emplace(*agent_.allocate(bytes));
    target_.emplace(*agent_.allocate(bytes));
  }
  static std::span<std::byte> bytesOf(const Pin& pin, std::size_t slot, ParcelPart part) {
    return pin.bytes().subspan((slot * viaduct::testing::kStormParts + part.component) * kBlock,
                               kBlock);
  }
  static Selection blockOf(const Pin& pin, std::size_t slot, ParcelPart part) {
    const auto address = reinterpret_cast<std::uint64_t>(bytesOf(pin, slot, part).data());
    return {*Blocks::strided({.base = address, .stride = 0, .bytes = kBlock, .count = 1}), {}};
  }

  std::string round(std::uint64_t first, std::size_t count) {
    makeRoom(count);
    until_ = Deadline(kRound);
    std::vector<Published> published;
    std::vector<Fetched> fetched;
    for (std::size_t slot = 0; slot < count; ++slot) {
      StormParcel of = viaduct::testing::stormParcel(seed_, first + slot, processes_);
      const auto rank = std::ranges::find(of.takers, self_);
      if (rank != of.takers.end()) beginFetch(fetched, of, slot, rank - of.takers.begin());
      if (of.owner == self_ || of.other == self_) publish(published, std::move(of), slot);
    }
    for (Published& one : published) makeReady(one);
    std::string ends = "ends";
    for (Fetched& one : fetched) ends += endOf(one);
    const Deadline takers_until(kTakers);
    for (Published& one : published) end(one, takers_until);
    return ends;
  }

  void publish(std::vector<Published>& all, StormParcel of, std::size_t slot) {
    Published one{.of = std::move(of), .slot = slot};
    PublishOptions options{
        .version = one.of.number, .parts = one.of.parts, .takers = 1, .digests = one.of.digests};
    options.on_end = [ends = one.ends](const ParcelEnd&) { ++*ends; };
    if (one.of.owner != self_) {
      const auto owner = agent_.peer(nameOf(one.of.owner));
      if (!owner) return;
      options.owner = *owner;
    }
    // publish() fails if a newer version is there, or if the owner is lost.
    if (auto parcel = agent_.publish(one.of.name, std::move(options))) {
      one.parcel.emplace(*std::move(parcel));
      all.push_back(std::move(one));
    }
  }

  void makeReady(Published& one) {
    for (const ParcelPart part : one.of.parts) {
      if (one.of.holder(part) != self_) continue;
      std::ranges::fill(bytesOf(*source_, one.slot, part), one.of.value(part));
      // ready() fails if the parcel has ended already.
      static_cast<void>(one.parcel->ready({part, blockOf(*source_, one.slot, part)}));
    }
    if (one.of.withdrawn && one.of.owner == self_) static_cast<void>(one.parcel->withdraw());
  }

  void beginFetch(std::vector<Fetched>& all, const StormParcel& of, std::size_t slot,
                  std::ptrdiff_t rank) {
    Fetched one{.of = of, .slot = slot};
    const auto owner = agent_.peer(nameOf(of.owner));
    if (!owner) return;
    FetchOptions options{.version = of.number, .exact = true, .deadline = until_};
    if (of.takers.size() > 1)
      options.group = {.name = "g" + std::to_string(of.number),
                       .size = static_cast<std::uint32_t>(of.takers.size()),
                       .rank = static_cast<std::uint32_t>(rank),
                       .at_least = of.at_least};
    for (const ParcelPart part : of.parts) {
      std::ranges::fill(bytesOf(*target_, slot, part), kUnused);
      options.into.push_back({.part = part, .into = blockOf(*target_, slot, part)});
    }
    options.on_end = [ends = one.ends](const ParcelEnd&) { ++*ends; };
    if (auto fetch = agent_.fetch(*owner, of.name, std::move(options))) {
      one.fetch.emplace(*std::move(fetch));
      if (of.cancelled && rank == 0) one.fetch->cancel("the storm");
      all.push_back(std::move(one));
    }
  }

  std::string endOf(Fetched& one) {
    static_cast<void>(one.fetch->wait(60s));
    const auto end = one.fetch->end();
    const std::string which = one.of.name + " " + std::to_string(one.of.number);
    if (!end) {
      violated("the fetch of " + which + " has no end");
      return {};
    }
    if (end->outcome == ParcelOutcome::kWhole) {
      if (end->version != one.of.number) violated("another version than that of " + which);
      for (const ParcelPart part : one.of.parts)
        if (!viaduct::testing::allAre(bytesOf(*target_, one.slot, part), one.of.value(part)))
          violated("a byte of another version in " + which);
    }
    waitForOnEnd(*one.ends, "the fetch of " + which);
    std::string out = " " + std::to_string(one.of.number) + ":" + parcelOutcomeName(end->outcome);
    for (const std::uint32_t rank : end->ranks) out += ":" + std::to_string(rank);
    return out;
  }

  void end(Published& one, Deadline takers_until) {
    const std::string which = one.of.name + " " + std::to_string(one.of.number);
    // A group that gave up before it had a version does not count as a taker.
    if (!one.of.cancelled) static_cast<void>(one.parcel->wait(takers_until));
    // withdraw() fails if a consumer was stopped in a copy, which it leaves once it continues.
    if (!one.parcel->withdraw() && !one.parcel->wait(60s)) violated(which + " does not end");
    waitForOnEnd(*one.ends, which);
    // Nobody may read these bytes any more, so they are used for something else at once.
    for (const ParcelPart part : one.of.parts)
      std::ranges::fill(bytesOf(*source_, one.slot, part), kUnused);
  }

  void waitForOnEnd(const std::atomic<int>& ends, const std::string& which) {
    const auto until = Clock::now() + 60s;
    while (ends == 0 && Clock::now() < until) agent_.poll();
    if (ends != 1) violated(which + " ended " + std::to_string(ends) + " times");
  }

  static constexpr std::uint64_t kBlock = viaduct::testing::kStormBlock;
  const std::size_t self_, processes_;
  const std::uint64_t seed_;
  Agent agent_;
  std::optional<Pin> source_, target_;
  Deadline until_ = Deadline::never();  // of the round
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  const auto number = [&](int at) { return std::stoull(argv[at]); };
  StormPeer peer(number(1), number(2),
                 {.name = nameOf(number(1)),
                  .backends = {argv[3]},
                  .detect = std::chrono::milliseconds(number(4)),
                  .grace = std::chrono::milliseconds(number(4))},
                 number(5));
  std::cout << peer.card() << std::endl;
  for (std::string line; std::getline(std::cin, line);)
    std::cout << peer.answer(viaduct::testing::words(line)) << std::endl;
  return 0;
}
