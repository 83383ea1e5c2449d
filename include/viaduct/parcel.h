// Parcels: named and versioned data in parts, which several ranks publish and groups of consumer
// ranks fetch. Each end sees one outcome of a parcel, and all ranks of a group see the same one:
// docs/design/0069-parcels.md. Threads: call from any; functions of the caller run on the same
// threads as TransferOptions::on_end, and must not block.
#pragma once

#include <viaduct/blocks.h>
#include <viaduct/deadline.h>
#include <viaduct/digest.h>
#include <viaduct/peer.h>
#include <viaduct/result.h>
#include <viaduct/transfer.h>

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace viaduct {

namespace agent {
class Publication;
class Fetching;
}  // namespace agent

inline constexpr std::size_t kMaxParcelName = 255;    // bytes, also of a group's name
inline constexpr std::size_t kMaxParcelParts = 4096;  // parts of a parcel, or ranks of a group
inline constexpr std::size_t kMaxParcelVersions = 4;  // of one name, counting those that are ending

// Names a part: a publishing rank, and a number that the application gives, such as a layer.
struct ParcelPart {
  std::uint32_t rank = 0, component = 0;
  friend auto operator<=>(const ParcelPart&, const ParcelPart&) = default;
};

enum class ParcelOutcome : std::uint8_t {
  kWhole,       // every byte of exactly this version
  kFailed,      // a part failed, for the reason in ParcelEnd::why
  kSuperseded,  // a newer version took its place before it was fetched
  kExpired,     // the parcel's time has passed
  kCancelled,   // a rank of the group cancelled, or the publisher withdrew it
  kLost,        // a session that it needed is over
};
const char* parcelOutcomeName(ParcelOutcome outcome);

struct ParcelEnd {
  ParcelOutcome outcome = ParcelOutcome::kWhole;
  std::uint64_t version = 0;
  std::optional<ParcelPart> part = {};         // the part that failed
  std::optional<std::uint32_t> consumer = {};  // the rank of the group that failed or was lost
  std::optional<Error> why = {};               // none if it is whole
  std::vector<std::uint32_t> ranks = {};       // whole: the ranks of the group that have all
};

// A part with its blocks at this agent, all in live pins. Its bytes are those of its blocks, one
// block after the other.
struct PublishedPart {
  ParcelPart part = {};
  Selection blocks = {};
};

struct PublishOptions {
  std::uint64_t version = 0;  // higher than all published here under this name
  std::uint64_t layout = 0;   // a signature that a fetch compares; 0: none
  // The agent that decides about the parcel. All publishing ranks name the same one, and fetches go
  // to it. None: this agent.
  std::optional<Peer> owner = {};
  // All parts, of all ranks. Empty: `ready` has all.
  std::vector<ParcelPart> parts = {};
  std::vector<PublishedPart> ready = {};  // parts that are ready already
  std::uint32_t takers = 0;  // the groups that may take it; 0: any number, until withdraw()
  // The parcel expires after this time, by this agent's clock, unless all takers have asked for it.
  std::optional<Duration> life = {};
  bool digests = false;  // makes a digest of each block as its part becomes ready
  // Publishes the parcel's name at the meeting place of Settings::meet, until its last handle is
  // closed: Agent::findParcel(). publish() then waits for the place, and fails if another agent has
  // published that name. Only the owner may set it.
  bool at_place = false;
  // Runs for each group, with its end, once no rank of it reads any more.
  std::function<void(const std::string& group, const ParcelEnd&)> on_taken = {};
  // Runs once: all expected groups have ended, and the blocks may be used again.
  std::function<void(const ParcelEnd&)> on_end = {};
};

// The publisher's handle. The destructor calls close(), and only logs its error.
class PublishedParcel {
 public:
  explicit PublishedParcel(std::shared_ptr<agent::Publication> impl);
  PublishedParcel(const PublishedParcel&) = delete;
  PublishedParcel& operator=(const PublishedParcel&) = delete;
  PublishedParcel(PublishedParcel&&) noexcept;
  PublishedParcel& operator=(PublishedParcel&&) noexcept;
  ~PublishedParcel();

  // Declares that the part has its bytes, which stay unchanged until the parcel has ended. A second
  // call for a part fails with kInvalid.
  Status ready(PublishedPart part);
  std::vector<ParcelPart> missing() const;  // the parts that are not ready
  std::uint64_t taken() const;              // the groups that have ended
  // Waits until all expected groups have ended and no rank reads any more.
  Result<ParcelEnd> wait(Deadline until) const;
  // Ends the parcel for everybody, also for other handles of it, and waits as wait() does. After a
  // return without an error the blocks may be used again. Takes at most twice Settings::grace.
  Status withdraw();
  // Gives up this handle. Withdraws the parcel if no other handle of it is left here.
  Status close();

 private:
  std::shared_ptr<agent::Publication> impl_;
  bool closed_ = false;
};

// The memory into which a fetch reads a part. `into` has as many bytes as are taken.
struct PartInto {
  ParcelPart part = {};
  Selection into = {};
  // The bytes that are taken, as offsets in the part. Empty: the whole part.
  Blocks slice = {};
  // The digests of the bytes that are here already, one for each block of `into`; empty: none. A
  // block is read only if the publisher's digest of it differs. Without PublishOptions::digests all
  // blocks are read.
  std::vector<Digest> have = {};
};

// A part that is ready, for a consumer that makes room for it.
struct PartOffer {
  ParcelPart part = {};
  std::uint64_t version = 0, bytes = 0;
};

// The consumer ranks that fetch a parcel together and get one verdict.
struct ParcelGroup {
  std::string name = {};  // the same at all ranks; empty: this rank alone
  std::uint32_t size = 1, rank = 0;
  // The fewest ranks for which the fetch may end as kWhole although other ranks are lost. 0: no
  // rank may be lost.
  std::uint32_t at_least = 0;
};

struct FetchOptions {
  // The fetch takes this version or a newer one, and waits for it until the deadline, also after a
  // withdrawal.
  std::uint64_t version = 0;
  bool exact = false;        // exactly this version; if it has ended, the fetch gets its outcome
  std::uint64_t layout = 0;  // 0: any
  // The id of the owner's agent, as in Card::agent, if no other process may serve the fetch.
  std::optional<std::array<std::uint8_t, 16>> owner = {};
  ParcelGroup group = {};
  // The parts to take, each once. Empty: `place` is asked for every part.
  std::vector<PartInto> into = {};
  // Makes room for a part once its size is known. An error fails the fetch.
  std::function<Result<PartInto>(const PartOffer&)> place = {};
  std::optional<Deadline> deadline = {};  // none: Settings::deadline from now
  Priority priority = Priority::kNormal;
  std::string require = {};  // see TransferOptions
  // Runs once, when no transfer of this fetch touches memory any more.
  std::function<void(const ParcelEnd&)> on_end = {};
};

// The owner of a parcel as the meeting place names it.
struct ParcelOwnerFound {
  Peer peer;
  std::array<std::uint8_t, 16> agent = {};  // for FetchOptions::owner
};

// The consumer's handle. The destructor cancels, and waits until its own transfers have ended.
class ParcelFetch {
 public:
  explicit ParcelFetch(std::shared_ptr<agent::Fetching> impl);
  ParcelFetch(const ParcelFetch&) = delete;
  ParcelFetch& operator=(const ParcelFetch&) = delete;
  ParcelFetch(ParcelFetch&&) noexcept;
  ParcelFetch& operator=(ParcelFetch&&) noexcept;
  ~ParcelFetch();

  // Waits for the end. Ok: the parcel is whole, for all ranks of the group. The error has the
  // reason otherwise, or is kTimeout at `until`.
  Status wait(Deadline until) const;
  // Waits until one part has arrived, before it is known whether the parcel will be whole. Use it
  // only if you can undo all that you make of the part.
  Status waitPart(ParcelPart part, Deadline until) const;
  std::optional<ParcelEnd> end() const;
  std::vector<ParcelPart> missing()
      const;                          // parts that have not arrived; empty until the owner answers
  void cancel(std::string_view why);  // does not block

 private:
  std::shared_ptr<agent::Fetching> impl_;
};

}  // namespace viaduct
