// The way to one life of one peer: its data sockets, and what happens when one is lost. Threads:
// under the agent's lock.
#pragma once

#include <memory>
#include <vector>

#include "backends/tcp/acceptor.h"
#include "backends/tcp/data_socket.h"
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

  bool accepts() const {
    return !seed_.dialer && state_.phase != core::LinkState::Phase::kUnusable;
  }
  const LinkId& id() const { return id_; }
  // The accepting end is offered a socket that names this link.
  Acceptor::HelloVerdict offer(const SocketHello& hello, const Acceptor::HelloBytes& bytes,
                               base::Fd& fd);

  // The socket for what this rail begins; none while the link is not ready, or the rail is out.
  DataSocket* socketFor(std::size_t rail);
  const Error& unusable() const { return why_; }
  // One of its sockets is.
  void lost(const DataSocket& data_socket);
  // Looks after its sockets, from now until nothing is under way.
  void watch() {
    if (sockets_.size() > 1 && watch_timer_ == 0) watchAgain();
  }
  void dropSlot(std::uint32_t slot);
  // Where its sockets lead.
  std::vector<TcpAddress> peers() const;

 private:
  // One of the link's sockets, through all of its lives. A life ends when both ends have said that
  // they have closed it; then neither touches memory for it any more, and it may be dialed again.
  struct Socket {
    std::unique_ptr<DataSocket> data_socket = {};
    std::unique_ptr<Dial> dial = {};
    std::size_t rail = 0;
    std::uint32_t life = 0;
    bool told = false, heard = false;  // that this life is over, to the peer and by it
    std::string out = {};              // why; empty: it was said, or there was none
    base::Poller::Id redial = 0;
    Duration patience{};  // before it is dialed again
  };
  std::size_t countOpen() const;
  bool servesOwn(std::size_t rail, bool open) const;

  void expect(std::size_t count);
  void dial(std::size_t index);
  void dialed(std::size_t index, Result<base::Fd> fd);
  Status adopt(std::size_t index, base::Fd fd);
  void opened(std::size_t index);
  void readyWhenComplete();
  void makeReady();

  void lose(std::size_t index, Error why);
  void settle(std::size_t index);
  void peerLost(std::size_t index, std::uint32_t life, const std::string& said);
  void watchAgain();
  void look();

  void fail(Error why);
  void dropSockets();
  void tellPeer();

  TcpBackend& backend_;
  core::LinkSeed seed_;
  core::LinkHost& host_;
  LinkId id_;
  const Clock::time_point begun_ = Clock::now();
  core::LinkState state_;
  Error why_;                  // it is unusable, or a rail of it is out
  bool peer_gave_up_ = false;  // and closed its sockets: it touches no memory for us any more
  RemotePins remote_;
  std::vector<Socket> sockets_;
  base::Poller::Id late_timer_ = 0, watch_timer_ = 0;
  std::size_t turn_ = 0;
};

}  // namespace viaduct::tcp
