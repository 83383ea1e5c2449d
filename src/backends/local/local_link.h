// The link to one peer on this host, for one session. Threads: under the agent's lock.
#pragma once

#include <string>
#include <unordered_map>

#include "backends/local/local_backend.h"
#include "backends/local/local_message.h"
#include "backends/local/own_gate.h"
#include "backends/local/peer_memory.h"
#include "core/backend.h"

namespace viaduct::local {

class LocalLink final : public core::Link {
 public:
  LocalLink(LocalBackend& backend, core::LinkSeed seed, core::LinkHost& host);
  ~LocalLink() override;
  LocalLink(const LocalLink&) = delete;
  LocalLink& operator=(const LocalLink&) = delete;
  void open();  // sends the hello

  core::LinkState state() const override { return state_; }
  void receive(std::span<const std::byte> message, std::vector<core::Fd> fds) override;
  void addPin(const core::RemotePin& pin) override;
  void dropPin(std::uint32_t slot) override;
  std::optional<std::string_view> reaches(OpKind kind, std::uint32_t local_pin,
                                          std::uint32_t remote_pin) const override;
  bool servedBy(const core::Rail& rail) const override;
  void close(core::Completions& out) override;
  std::function<bool()> settling() const override;

  // Used by the rail and the backend.
  PeerMemory* peer() { return usable() ? &peer_ : nullptr; }
  void offerFile(std::uint32_t id, const LocalBackend::File& file);
  void withdrawFile(std::uint32_t id, const LocalBackend::File& file);

 private:
  bool shares(const LocalBackend::File& file) const {
    return !closed_ && !seed_.same_process && own_ != nullptr &&
           file.identity.audience.has(seed_.rights->session());
  }
  struct KnownPin {
    PinInfo info;
    PinKey key;
    std::uint64_t born = 0;
  };
  using Fds = std::vector<core::Fd>;
  bool usable() const {
    return !closed_ && state_.phase == core::LinkState::Phase::kReady && peer_.attached();
  }
  Status sayHello();
  Status heard(const LocalHello& hello, Fds fds);
  Status heard(const FileOffer& offer, Fds fds);
  Status heard(const FileGone& gone, const Fds& fds);
  Status attachAcross(Fds& fds);
  std::string tryCma(const LocalHello& hello);
  void show(std::uint32_t slot, const KnownPin& pin);
  void retire(PeerMemory::Old old);
  Result<std::shared_ptr<const base::SharedMemory>> mapFile(const core::Fd& file,
                                                            std::uint64_t bytes);
  void fail(std::string why, Code code = Code::kUnsupported);

  LocalBackend& backend_;
  core::LinkSeed seed_;
  core::LinkHost& host_;
  core::LinkState state_;
  bool closed_ = false;

  // Our memory, in the form that the peer reaches.
  std::shared_ptr<OwnGate> own_;
  LocalHello hello_;

  // The peer's memory. `peer_` points to the members before it.
  std::optional<Door> door_;  // if both agents are in one process
  base::SharedMemory gate_page_;
  std::optional<LiveTable> live_;
  bool cma_ = false;
  base::Budget mapped_;
  std::unordered_map<std::uint32_t, std::shared_ptr<const base::SharedMemory>> files_;
  std::unordered_map<std::uint32_t, KnownPin> pins_;
  PeerMemory peer_;
};

}  // namespace viaduct::local
