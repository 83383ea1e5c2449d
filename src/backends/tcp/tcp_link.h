// The way to one life of one peer: its data sockets, and what happens when one is lost. Threads:
// under the agent's lock.
#pragma once

#include <memory>
#include <vector>

#include "backends/tcp/acceptor.h"
#include "backends/tcp/channel.h"
#include "backends/tcp/dial.h"
#include "core/backend.h"

namespace viaduct::tcp {

class TcpBackend;
class TcpRail;

class TcpLink final : public core::Link {
 public:
  TcpLink(TcpBackend& backend, core::LinkSeed seed, core::LinkHost& host);
  ~TcpLink() override;
  TcpLink(const TcpLink&) = delete;
  TcpLink& operator=(const TcpLink&) = delete;

  core::LinkState state() const override { return state_; }
  void receive(std::span<const std::byte> message, std::vector<core::Fd> fds) override;
  void addPin(const core::RemotePin& pin) override;
  void dropPin(std::uint32_t slot) override { remote_.drop(slot); }
  std::optional<std::string_view> reaches(OpKind kind, std::uint32_t local_pin,
                                          std::uint32_t remote_pin) const override;
  bool servedBy(const core::Rail& rail) const override;
  void close(core::Completions& out) override;

  bool accepts() const { return !seed_.dialer && state_.phase == core::LinkState::Phase::kOpening; }
  const LinkId& id() const { return id_; }
  // The accepting end is offered a socket that names this link.
  Acceptor::Verdict offer(const Hello& hello, const Acceptor::HelloBytes& bytes, base::Fd& fd);

  // The socket for what this rail begins; none while the link is not ready.
  Channel* channelFor(std::size_t rail);
  const Error& unusable() const { return why_; }
  // The end of the link within the session: one of its sockets is lost, or can not be had.
  void fail(Error why);
  void dropSlot(std::uint32_t slot);
  // Where its sockets lead.
  std::vector<Endpoint> peers() const;

 private:
  void dial();
  void dialed(std::size_t index, Result<base::Fd> fd);
  Status adopt(std::size_t index, base::Fd fd);
  void readyWhenComplete();
  void dropSockets();
  void tellPeer();

  TcpBackend& backend_;
  core::LinkSeed seed_;
  core::LinkHost& host_;
  LinkId id_;
  core::LinkState state_;
  Error why_;                  // it is unusable
  bool peer_gave_up_ = false;  // and closed its sockets: it touches no memory for us any more
  RemotePins remote_;
  std::vector<std::unique_ptr<Channel>> channels_;
  std::vector<std::unique_ptr<Dial>> dials_;
  std::size_t missing_ = 0;  // sockets
  std::size_t turn_ = 0;
};

}  // namespace viaduct::tcp
