// The link of the tcp backend. Dials and accepts its sockets, and finds the silent ones. Threads:
// under the agent's lock.
#pragma once

#include <atomic>
#include <vector>

#include "backends/tcp/acceptor.h"
#include "backends/tcp/tcp_channel.h"
#include "move/channel_link.h"

namespace viaduct::tcp {

class TcpBackend;

class TcpLink final : public move::ChannelLink {
 public:
  TcpLink(TcpBackend& backend, core::LinkSeed seed, core::LinkHost& host);
  ~TcpLink() override;
  TcpLink(const TcpLink&) = delete;
  TcpLink& operator=(const TcpLink&) = delete;

  void receive(std::span<const std::byte> message, std::vector<core::Fd> fds) override;
  void addPin(const core::RemotePin& pin) override;
  void dropPin(std::uint32_t slot) override { remote_.drop(slot); }
  std::optional<std::string_view> reaches(OpKind kind, std::uint32_t local_pin,
                                          std::uint32_t remote_pin) const override;
  bool isPrivate() const override { return protection_.level == Privacy::kEncrypted; }
  std::optional<Privacy> protection() const override;

  bool accepts() const { return !seed().dialer && !over(); }
  const LinkId& id() const { return id_; }
  // Only at the accepting end: offers a socket whose hello names this link.
  Acceptor::HelloVerdict offer(const SocketHello& hello, const Acceptor::HelloBytes& bytes,
                               base::Fd& fd);

  void opened(move::Channel& channel) override;
  void broke(move::Channel& channel) override;
  // If the link has several sockets: checks them for silence at intervals, while one is active or
  // has unacknowledged data.
  void watch();
  // True for the first call since the last check began: the caller then has watch() called. Always
  // false for a link with one socket. Threads: any that runs one of the link's rails.
  bool wantsWatch();
  void dropSlot(std::uint32_t slot);
  // Adds the figures of its open sockets to those of their rails.
  void addTo(std::span<SocketStatistics> rails) const;
  // Call it when the channel's socket is about to be closed: keeps the socket's counts.
  void addClosed(TcpChannel& channel);
  // The peer's addresses of all open sockets.
  std::vector<base::SocketAddress> peers() const;

 private:
  static TcpChannel& of(const std::unique_ptr<move::Channel>& channel) {
    return static_cast<TcpChannel&>(*channel);
  }
  Status open(move::Channel& channel) override;
  std::string readyText() override { return std::string(way()); }
  std::string_view way() const { return wayOf(protection_, seed().same_host); }
  SocketHello helloOf(const move::Channel& channel) const;
  void tellShut(const move::Channel* channel, move::ShutReason reason, const Error& why) override;
  bool lacked() const override;

  Status meet();
  void refuse(Error why);
  void expect(std::size_t count);
  void dialed(TcpChannel& channel, Result<base::Fd> fd);
  void adopt(TcpChannel& channel, base::Fd fd);
  void look();

  TcpBackend& backend_;
  LinkId id_;
  TcpAddress theirs_;
  Protection protection_;
  std::optional<Error> refusal_;  // the two ends do not agree
  base::Poller::Id refusal_timer_ = 0;
  const Clock::time_point begun_ = context().poller.now();
  RemotePins remote_;
  base::Poller::Id watch_timer_ = 0;
  std::atomic<bool> watched_{false};  // that timer is set, or about to be
};

}  // namespace viaduct::tcp
