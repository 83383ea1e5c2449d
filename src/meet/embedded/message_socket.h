// Sends and receives messages over a connected socket. Threads: one at a time.
#pragma once

#include <viaduct/result.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "base/fd.h"
#include "base/net/frame_socket.h"
#include "base/poller.h"
#include "meet/embedded/frame.h"

namespace viaduct::meet::embedded {

class MessageSocket {
 public:
  MessageSocket(base::Fd socket, std::size_t limit)
      : socket_(std::move(socket)), reader_(kMeetFrames, limit) {}
  ~MessageSocket() {
    if (poller_ != nullptr) poller_->forget(watch_);
  }
  MessageSocket(const MessageSocket&) = delete;
  MessageSocket& operator=(const MessageSocket&) = delete;

  // From now on the poller sends queued bytes when the socket has room. The poller calls
  // `readable`, which may destroy this object, when read() has bytes, an end or an error to find.
  Status watch(base::Poller& poller, std::function<void()> readable);
  int fd() const { return socket_.get(); }
  Status useKeys(const Key& sending, const Key& receiving) {
    VIADUCT_CHECK(writer_.useKey(sending));
    return reader_.decoder().useKey(receiving);
  }
  void setLimit(std::size_t limit) { reader_.decoder().setLimit(limit); }

  // Writes as much as the socket accepts, and queues the rest. An error is the socket's, or kBusy
  // if too much is queued, because the other end does not read. A packet refused with kBusy is not
  // sent later. A failed socket is also found by read(), after the other end's last messages.
  Status send(const PacketPtr& packet);

  // Reads once, and passes each complete message to `take`. Its payload is valid during that call.
  // `take` may change limit and keys. False: the stream has ended. After an error the socket is
  // unusable.
  using Take = std::function<Status(const base::Frame& frame)>;
  Result<bool> read(const Take& take);

 private:
  Status flush();
  Status watchRoom();

  base::Fd socket_;
  base::FrameReader reader_;
  base::FrameWriter writer_{kMeetFrames};
  base::Poller* poller_ = nullptr;
  base::Poller::Id watch_ = 0;
  bool watches_room_ = false;  // the poller reports room in the socket
};

}  // namespace viaduct::meet::embedded
