// The backend that moves bytes to any host over plain TCP sockets. NOTES.md has the wire format and
// the guarantees.
// Threads: under the agent's lock.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "backends/tcp/acceptor.h"
#include "backends/tcp/data_socket.h"
#include "core/backend.h"
#include "move/channel_link.h"

namespace viaduct::tcp {

class TcpLink;

class TcpBackend final : public core::Backend {
 public:
  explicit TcpBackend(const core::BackendContext& context);
  ~TcpBackend() override;
  Status open(const Settings& settings, Clock::time_point until = Clock::time_point::max());

  const core::Capabilities& can() const override;
  std::span<const std::unique_ptr<core::Rail>> rails() override { return rails_; }
  std::vector<SocketStatistics> sockets() const override;
  core::Bytes address() const override;
  std::unique_ptr<core::Link> link(core::LinkSeed seed, core::LinkHost& host) override;
  Result<core::Bytes> pinFor(const core::Audience& audience, std::uint32_t slot,
                             const Segment& memory) override;
  Status unpin(std::uint32_t slot) override;

  TcpShared& shared() { return shared_; }
  const std::vector<RailSource>& sources() const { return sources_; }
  std::size_t socketsPerSource() const { return sockets_; }
  move::LinkContext linkContext();
  // The index of the rail for a link's socket with this index and this local address.
  std::size_t railFor(std::size_t index, const base::SocketAddress& local) const;
  void forget(const TcpLink& link);
  // The time that all sockets of the rail, open and closed, have spent on sealing.
  base::SealingTime& sealingTime(std::size_t rail) { return sealing_[rail]; }
  // Keeps the counts of a socket that is about to be closed.
  void addClosed(std::size_t rail, int fd);
  std::size_t strangers() const { return acceptor_.pending(); }
  bool lackedSince(Clock::time_point then) const { return acceptor_.lackedSince(then); }

 private:
  Status listen(const base::SocketAddress& at, const PortRange& ports);
  Acceptor::HelloVerdict offer(const SocketHello& hello, const Acceptor::HelloBytes& bytes,
                               base::Fd& fd);

  TcpShared shared_;
  std::vector<RailSource> sources_;
  std::size_t sockets_ = 1;
  std::vector<std::unique_ptr<core::Rail>> rails_;
  std::vector<move::ChannelRail*> channel_rails_;
  std::vector<TcpLink*> links_;
  std::vector<SocketStatistics> closed_;   // by rail
  std::deque<base::SealingTime> sealing_;  // by rail
  Acceptor acceptor_;
};

}  // namespace viaduct::tcp
