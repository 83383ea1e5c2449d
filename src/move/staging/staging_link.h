// Moves between memory and storage of two agents, in stages: storage to a ring of host memory, host
// to host over a network backend, and the ring to storage. Storage is here all memory that only its
// own agent reaches: files, objects, and memory of GPUs. Chunks are in different stages at the
// same time, so the slowest stage sets the pace (docs/design/0030-stages.md). Threads: under the
// agent's exclusive lock.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/backend.h"
#include "move/job_table.h"
#include "move/staging/staging_chunk.h"
#include "move/staging/staging_host.h"
#include "move/staging/staging_message.h"
#include "move/staging/staging_server.h"

namespace viaduct::move {

class StagingRail;

class StagingLink final : public core::Link, public Carrier, private HopOwner {
 public:
  StagingLink(core::LinkSeed seed, StagingRail& rail, core::LinkHost& session,
              std::unique_ptr<StagingHost> host);
  ~StagingLink() override;
  StagingLink(const StagingLink&) = delete;
  StagingLink& operator=(const StagingLink&) = delete;

  core::LinkState state() const override;
  void receive(std::span<const std::byte> message, std::vector<core::Fd> fds) override;
  void addPin(const core::RemotePin& pin) override {
    storage_pins_.insert_or_assign(pin.info.slot, pin.info);
  }
  void dropPin(std::uint32_t slot) override { storage_pins_.erase(slot); }
  std::optional<std::string_view> reaches(OpKind kind, std::uint32_t local_pin,
                                          std::uint32_t remote_pin) const override;
  bool servedBy(const core::Rail& rail) const override;
  void close(core::Completions& out) override;
  std::function<bool()> settling() const override { return settling_; }

  // The rail calls the functions below.
  void take(const core::Work& work);
  void stop(Job& job) override;
  bool busy() const;  // progress() has work
  void progress(core::Completions& out);
  std::uint64_t ticket() const { return ticket_; }  // 0: it does not wait for memory of a ring
  // Call it when another link waits for memory. Frees this end's ring once no chunk is in a stage,
  // and asks the peer to return the rings that it was lent.
  void recallRings();

 private:
  // The stage of a chunk; its number is PathShare::stage.
  enum class ChunkStep : std::uint8_t { kFree, kLoad, kMove, kStore };
  // A stage that chunks of a job are in, and since when.
  struct StageUse {
    std::uint32_t chunks = 0;
    Clock::time_point counted = {};  // the time until here is counted in the path
  };
  // A job of this end. The link holds one of the job's outstanding parts until endJobs().
  struct StagedJob : Job {
    std::span<const core::Op> ops = {};
    core::Requirement required = {};  // of the stage between the agents
    Priority priority = Priority::kNormal;
    RingPlace place = {};                           // of the peer's ring
    bool from_storage = false, to_storage = false;  // where the bytes come from and go to
    bool local_storage = false, remote_storage = false;
    bool packed = false;  // host memory at both ends takes the part of storage
    // The end whose storage is read. A chunk is read in one piece, so its gaps follow this end.
    OpEnd readEnd() const {
      const bool local = local_storage && (writes() || !remote_storage);
      return local ? OpEnd::kLocal : OpEnd::kRemote;
    }
    OpEnd writtenEnd() const { return writes() ? OpEnd::kRemote : OpEnd::kLocal; }
    bool writes() const { return work.kind == OpKind::kWrite; }
    bool isCut() const { return cut.op == ops.size(); }
    OpCursor cut = {};
    std::uint32_t chunks = 0;             // in a stage
    std::array<StageUse, 4> stages = {};  // by ChunkStep
    Path path = {};                       // since the last report
    // True: the job writes objects, each as a whole.
    bool to_objects = false;
    std::vector<core::Op> sorted = {};       // behind `ops`, by the place in the objects
    std::vector<std::uint64_t> wholes = {};  // of objects larger than a chunk, in their order
  };
  // The job and the stage of one chunk. If the job uses two rings, the chunk has this number in
  // both. Neighbouring chunks may be used as one large chunk.
  struct Chunk {
    StagedJob* job = nullptr;
    ChunkStep step = ChunkStep::kFree;
    std::uint32_t width = 1;  // chunks
    bool joined = false;      // a part of the large chunk before it
    std::uint64_t whole = 0;  // core::OpList::whole of its store
    ChunkPlan plan = {};
    std::unique_ptr<Hop> hop = {};  // null while the peer does the step
    std::optional<HopEnd> ended = {};
  };
  void hopEnded(std::uint32_t chunk, HopEnd end) override;
  void wake();
  Result<std::optional<StagingRing>> takeRing(bool lent, RingPlace place);
  bool hasWaitedLong() const;
  void returnRings();
  void prepareObjects(StagedJob& job);
  RingPlace placeFor(const StagedJob& job) const;
  bool fitsPlace(const StagedJob& job) const;
  void goThroughHost(StagedJob& job) const;
  Status prepareRings(StagedJob& job, bool& wait);
  bool readyToFill(StagedJob& job);
  bool fillFreeChunk(StagedJob& job);
  void fillFreeChunks();
  std::uint32_t widthFor(StagedJob& job);
  std::optional<std::uint32_t> freeChunks(std::uint32_t width, std::uint32_t chunks) const;
  void packForObject(StagedJob& job, Chunk& chunk);
  void release(std::uint32_t number);
  void advance(std::uint32_t number);
  std::uint64_t countUse(const Chunk& chunk);
  ChunkStep after(const Chunk& chunk) const;
  Status begin(std::uint32_t number);
  Status ask(std::uint32_t number, bool store);
  Status startStorage(std::uint32_t number, OpKind kind);
  Status startMove(std::uint32_t number);
  Status startHop(std::uint32_t number, StagingHost::To to, OpKind kind, core::OpList list);
  // The number and size of the chunks that a job of this end can use. If the job goes through two
  // rings, these are the smaller values of both.
  StagingRing sizes(const StagedJob& job) const;
  static ChunkPlan cut(StagedJob& job, std::uint64_t chunk_bytes);
  void failJob(StagedJob& job, Error why);
  void endJobs(core::Completions& out);
  static void reportPath(StagedJob& job, core::Completions& out);
  void giveUpWholes(const StagedJob& job);
  std::uint64_t ownAddress(std::uint32_t chunk) const {
    return own_->address + chunk * own_->chunk_bytes;
  }

  void breakOff(Error why);
  void receive(RingAnswer&& answer);
  void receive(RingRecall&& recall);
  void receive(StorageAnswer&& answer);
  template <class Request>
  void receive(Request&& request) {
    server_.take(std::forward<Request>(request));
  }
  Status send(const StagingMessage& message) { return session_.send(encode(message)); }

  const std::string peer_;
  const bool self_;  // the peer is this agent
  StagingRail& rail_;
  core::LinkHost& session_;
  const std::unique_ptr<StagingHost> host_;
  const std::function<bool()> settling_;
  std::map<std::uint32_t, PinInfo> storage_pins_;  // of the peer
  std::vector<StagedJob*> jobs_;                   // in the order of their posts
  std::vector<Chunk> chunks_;
  std::optional<StagingRing> own_;          // the ring for this end's jobs
  std::map<RingPlace, StagingRing> peers_;  // the rings that the peer lends
  std::set<RingPlace> asked_, refused_;     // rings that the peer was asked for, or does not lend
  std::optional<Error> no_ring_;            // the peer's messages or ring are unusable
  // Rings that others wait for, or that are unsettled. No chunk begins a transfer until they are
  // given back.
  bool own_recalled_ = false;
  std::set<RingPlace> peers_recalled_;
  // While this link waits for memory of a ring: its ticket in the queue, and the time since when it
  // waits.
  std::uint64_t ticket_ = 0;
  Clock::time_point waits_since_ = {};
  bool still_waits_ = false;                   // since the present progress()
  std::optional<Error> broken_rule_;           // a message that no honest peer sends
  std::set<std::array<std::string, 3>> told_;  // backend, way and rail of the peer's shares
  StagingServer server_;
  bool closed_ = false;
  bool news_ = false;  // progress() has work that needs no further event
};

}  // namespace viaduct::move
