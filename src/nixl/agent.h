// An agent with the calls of NIXL. Threads: call with the agent's lock held, except where a comment
// says otherwise. A call releases the lock while it blocks or copies.
#pragma once

#include <viaduct/agent.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "nixl/agent_lock.h"
#include "nixl/fenced_transfer.h"
#include "nixl/lists.h"
#include "nixl/metadata.h"
#include "nixl/plugins.h"
#include "nixl/prepared.h"
#include "nixl/storage.h"

namespace viaduct::nixl {

// Time limit for the first connection to a remote agent, from the moment its metadata was added.
// Calls fail at once if the agent was connected and then lost, unless it is connecting again.
inline constexpr std::chrono::seconds kReachWithin{5};

enum class Direction : int { kRead, kWrite };

// The times and sizes of one post of a transfer.
struct Telemetry {
  std::uint64_t start_us = 0;   // microseconds since 1970
  std::uint64_t steady_us = 0;  // the same moment, in microseconds of the steady clock
  std::uint64_t post_us = 0, transfer_us = 0;
  std::uint64_t bytes = 0, descriptors = 0;
};

// Another agent, as its metadata describes it.
struct Remote {
  std::string name;
  AgentId agent{};
  std::optional<Peer> peer;  // empty: the metadata had no addresses
  bool is_self = false;
  std::vector<Region> regions;
  std::shared_ptr<const core::PinMap> memory;
  std::string blob;  // the metadata as the caller passed it
  Clock::time_point connecting_since{};
  std::uint64_t epoch_before = 0;  // the peer's session number at `connecting_since`
  bool was_connected = false;      // a session has begun after `connecting_since`
  std::uint64_t loaded_epoch = 0;  // the peer's session number when the metadata was added
  std::uint64_t known_epoch = 0;   // a session that checkLife() found to be with this very process
  std::uint32_t announced = 0;     // the session has announced the registrations up to this serial
  std::uint32_t newest = 0;        // the highest serial in `memory`
  bool looked_at_pins = false;

  void addRegions(const std::vector<Region>& more);  // skips regions that are already in `regions`
  void setMemory(std::shared_ptr<const core::PinMap> registered);
};

struct PreparedList {
  std::shared_ptr<Remote> remote = {};               // null: memory of this agent, or storage
  Prepared descriptors = {};                         // in storage, the addresses are offsets
  std::shared_ptr<StorageAgent> storage = {};        // null: memory
  std::vector<std::shared_ptr<Stored>> stored = {};  // the file or object of each descriptor
};

// The descriptors that a transfer takes on one side: those at the indices, or all of the list.
struct Side {
  std::shared_ptr<PreparedList> list;
  std::optional<Indices> indices = {};

  Chosen chosen() const { return {list->descriptors, indices}; }
  Result<Selection> select(bool written) && {
    return list->descriptors.select(std::move(indices), written);
  }
};

struct Request {
  FencedTransfer transfer;
  std::shared_ptr<Remote> remote;  // null: a transfer with storage
  std::string note;
  std::uint64_t descriptors = 0;
  bool posted = false;
  Clock::time_point started{};
  std::optional<Telemetry> telemetry{};
  bool over = false;              // the post has ended, and `telemetry` has its time
  Memory memory = Memory::kDram;  // of the remote side
  std::vector<std::shared_ptr<Stored>> stored = {};
  std::vector<std::shared_ptr<Pin>> pins = {};  // of the storage
};

struct RequestOptions {
  std::string note = {};
  Priority priority = Priority::kNormal;
};

class NixlAgent {
 public:
  // `lock` lives longer than the agent.
  NixlAgent(std::string name, bool capture_telemetry, AgentLock& lock);
  NixlAgent(const NixlAgent&) = delete;
  NixlAgent& operator=(const NixlAgent&) = delete;
  ~NixlAgent();  // call without the lock
  void close();

  const std::string& name() const { return name_; }
  // The `capture_telemetry` of the constructor, unless NIXL_TELEMETRY_ENABLE says otherwise.
  bool capturesTelemetry() const { return telemetry_; }
  // Returns the handle of that plugin's backend, which only the first call for the plugin opens.
  std::uint64_t createBackend(std::string_view plugin, const Parameters& parameters);
  const Plugin& backend(std::uint64_t handle) const;
  const std::vector<const Plugin*>& backends() const { return backends_; }
  // The kinds of memory of a plugin.
  std::vector<Memory> memoriesOf(const Plugin& plugin) const;
  // Looks up the files or objects that the metadata names. Nothing: it is absent.
  std::vector<std::optional<Parameters>> query(const RegistrationList& list, const Plugin& backend);

  void registerMemory(const RegistrationList& list);
  void deregisterMemory(const RegistrationList& list);

  std::shared_ptr<const std::string> metadata();
  std::string partialMetadata(const RegistrationList& list, bool with_card);
  const std::string& addRemote(std::string blob);
  void removeRemote(const std::string& name);
  bool knowsRemote(const std::string& name, const TransferList& list);
  // Finds the agent through the meeting place, the directory server where agents publish names. If
  // there is a label, adds the metadata that the agent offers under it. Waits at most kReachWithin.
  void findRemote(const std::string& name, const std::string& label);
  // Offers partial metadata under a label to agents that find this one by name.
  void offerPart(const std::string& label, std::string blob);
  void withdrawParts();
  // The peer behind an added agent, for a wait until it is connected.
  Peer connection(const std::string& name);

  std::uint64_t prepare(const std::string& agent, const TransferList& list);
  void releasePrepared(std::uint64_t handle);
  std::uint64_t makeRequest(Direction direction, std::uint64_t local, Indices local_indices,
                            std::uint64_t remote, Indices remote_indices, RequestOptions options);
  std::uint64_t makeRequest(Direction direction, const TransferList& local,
                            const TransferList& remote, const std::string& agent,
                            RequestOptions options);
  // postRequest() and checkRequest() return true if the transfer is done, and false while it runs.
  // They raise the error of a failed transfer.
  bool postRequest(std::uint64_t handle, std::string note);
  bool checkRequest(std::uint64_t handle);
  Telemetry telemetry(std::uint64_t handle);
  void releaseRequest(std::uint64_t handle);
  // The backend of a transfer.
  std::uint64_t requestBackend(std::uint64_t handle);
  // How the last post moved its bytes, as Path::text().
  std::string requestPath(std::uint64_t handle);

  // A descriptor that is readable while wait() has something to do.
  int fileno();
  // Waits until the descriptor of fileno() is readable. Threads: any, without the lock.
  static Status awaitEvents(int events, Deadline until);
  // Makes progress on everything once, after a wait.
  void progress();

  std::vector<Note> takeNotes();
  void sendNote(const std::string& name, const std::string& note);

 private:
  // Refuses a child of fork(): its copy of the agent has no threads.
  void need(const char* operation) const;

  struct Registration {
    std::uint64_t count = 0;
    std::uint32_t serial = 0;
    std::optional<Pin> pin = {};
    std::shared_ptr<Stored> stored = {};  // of a file or object, in place of the pin
  };

  std::vector<Memory> networkMemories() const;
  void openStorage(const Plugin& plugin, const Parameters& parameters);
  std::vector<MemoryRange> rangesOf(const RegistrationList& list, const char* operation) const;
  void registerStorage(const std::vector<MemoryRange>& ranges, const RegistrationList& list);
  void withdraw(std::vector<Registration> ended);
  const std::shared_ptr<StorageAgent>& storageFor(Memory memory, const char* operation) const;
  std::shared_ptr<Stored> storedAt(Memory memory, std::uint64_t device, const Extent& part) const;
  std::shared_ptr<PreparedList> prepareStorage(const std::string& agent, const TransferList& list);
  std::vector<Region> regions() const;
  std::shared_ptr<const std::vector<Region>> ownRegions();
  std::shared_ptr<const core::PinMap> ownMemory();
  void forgetCaches() {
    own_regions_.reset();
    own_memory_.reset();
    metadata_.reset();
  }
  Metadata describe(std::vector<Region> regions, bool with_card, bool partial) const;
  std::shared_ptr<Remote> remoteOf(const std::string& name);
  std::shared_ptr<Remote> self();
  void forgetRemoved();
  Result<std::string> readPart(const Peer& peer, const std::string& label, Deadline until);
  Result<std::string> readNewestPart(const Peer& peer, const std::string& label, Deadline until);
  void startConnecting(Remote& remote, Peer peer, bool same_life);
  const Peer& peerOf(Remote& remote);
  std::optional<Deadline> reachOf(Remote& remote);
  void lookAtPins(Remote& remote);
  void checkLife(Remote& remote);
  std::shared_ptr<PreparedList> prepared(std::uint64_t handle) const;
  std::shared_ptr<Request> request(std::uint64_t handle) const;
  std::shared_ptr<PreparedList> prepareList(const std::string& agent, const TransferList& list);
  Transfer plan(OpKind kind, Remote& remote, const Selection& local, const Selection& there,
                Priority priority);
  void awaitPins(Remote& remote, const Selection& there, TransferOptions& options);
  std::uint64_t makeRequest(Direction direction, Side local, Side remote, RequestOptions options);
  std::shared_ptr<Request> makeMemoryRequest(bool write, Side local, Side remote,
                                             RequestOptions options);
  std::shared_ptr<Request> makeStorageRequest(bool write, Side local, const Side& remote,
                                              const RequestOptions& options);
  void watch(const Result<int>& events);
  bool isLoopOverNotes();
  bool outcomeOf(Request& request, TransferState state);

  AgentLock& lock_;
  const std::string name_;
  const bool telemetry_;
  const std::uint64_t fork_generation_;
  std::optional<Agent> agent_;
  AgentId id_{};
  std::map<MemoryRange, Registration> registrations_;
  std::mutex registering_;         // so that peers hear of serials in order; locked without lock_
  std::uint32_t last_serial_ = 0;  // guarded by registering_
  // Caches; null after registrations changed.
  std::shared_ptr<const std::vector<Region>> own_regions_;
  std::shared_ptr<const core::PinMap> own_memory_;
  std::shared_ptr<const std::string> metadata_;
  std::vector<const Plugin*> backends_;  // the backend of handle h has the index h - 1
  std::map<Memory, std::shared_ptr<StorageAgent>> storages_;
  std::unordered_map<std::string, std::shared_ptr<Remote>> remotes_;
  std::shared_ptr<Remote> self_;
  Clock::time_point asked_for_notes_{};
  base::Fd events_;  // an epoll over the agents of memory and of storage; empty before fileno()
  // Partial metadata by label, pinned so that other agents read it.
  struct OfferedPart {
    std::unique_ptr<const std::string> blob;
    Pin pin;
  };
  std::map<std::string, OfferedPart> parts_;
  std::vector<Peer> removed_;  // removed peers until their sessions are lost
  std::unordered_map<std::uint64_t, std::shared_ptr<PreparedList>> prepared_;
  std::unordered_map<std::uint64_t, std::shared_ptr<Request>> requests_;
};

}  // namespace viaduct::nixl
