// A channel over tcp. Each life has a socket, which the dialer connects and the other end accepts.
// Threads: as move::Channel.
#pragma once

#include <memory>

#include "backends/tcp/data_socket.h"
#include "backends/tcp/dial.h"
#include "move/channel.h"

namespace viaduct::tcp {

class TcpLink;

class TcpChannel final : public move::Channel {
 public:
  TcpChannel(TcpLink& link, const Position& place, const move::ChannelLife& life);

  void dial(base::Poller& poller, Dial::Plan plan, Dial::Done done) {
    dial_ = std::make_unique<Dial>(poller, std::move(plan), std::move(done));
  }
  // Takes the socket of this life, after hello and welcome.
  Status adopt(TcpShared& shared, const RemotePins& remote, const core::PinRights& rights,
               base::Fd fd, const Protection& protection, SocketKeys keys);
  // Null while the channel is not open.
  DataSocket* socket() { return socket_.get(); }

  // The socket calls these.
  void wake() { host().activate(*this); }
  void lost(Error why) { breakWith(std::move(why)); }

  void add(move::Job& job) override;
  void stop(move::Job& job) override;
  void close() override;
  void settle() override {}
  void forgetJobs() override {}
  void progress(Clock::time_point now, const move::Turn& turn) override {
    socket_->progress(now, turn);
  }
  bool sleep(Clock::time_point now) override;
  void awake() override;
  bool hasEvents() const override { return watches_; }
  void handleEvents() override;

 private:
  TcpLink& link_;
  std::unique_ptr<Dial> dial_;
  std::unique_ptr<DataSocket> socket_;
  bool watches_ = false;  // the link has to begin to watch its sockets
};

}  // namespace viaduct::tcp
