// Sends and receives messages over a connected socket. Threads: one at a time.
#pragma once

#include <sys/types.h>
#include <viaduct/result.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <utility>

#include "base/fd.h"
#include "base/poller.h"
#include "meet/embedded/frame.h"

namespace viaduct::meet::embedded {

class MessageSocket {
 public:
  MessageSocket(base::Fd socket, std::size_t limit) : socket_(std::move(socket)), decoder_(limit) {}
  ~MessageSocket() {
    if (poller_ != nullptr) poller_->forget(watch_);
  }
  MessageSocket(const MessageSocket&) = delete;
  MessageSocket& operator=(const MessageSocket&) = delete;

  // From now on the poller sends queued bytes when the socket has room. It calls `readable`, which
  // may destroy this object, when read() finds bytes, an end or an error.
  Status watch(base::Poller& poller, std::function<void()> readable);
  int fd() const { return socket_.get(); }
  void useKeys(const Key& sending, const Key& receiving) {
    sealer_.useKey(sending);
    decoder_.useKey(receiving);
  }
  void setLimit(std::size_t limit) { decoder_.setLimit(limit); }

  // Writes as much as the socket accepts, and queues the rest. An error is the socket's, or kBusy
  // if too much is queued, because the other end does not read. A packet refused with kBusy is not
  // sent later. A failed socket is also found by read(), after the other end's last messages.
  Status send(const PacketPtr& packet);

  // Reads once, into `scratch`, and passes complete messages to `take`.
  enum class Read : std::uint8_t { kNothing, kSome, kEnd };
  Result<Read> read(std::span<std::byte> scratch, const Decoder::Take& take);
  // The received bytes of an unfinished message.
  ByteSpan unfinished() const { return decoder_.unfinished(); }

 private:
  struct Queued {
    Header header;
    PacketPtr packet;
  };

  Status flush();
  Status flushQueue();
  ssize_t writeFirst();  // returns the result of sendmsg

  base::Fd socket_;
  Sealer sealer_;
  Decoder decoder_;
  std::deque<Queued> queue_;
  std::size_t own_bytes_ = 0;  // payload bytes in queue_ that no other connection shares
  std::size_t sent_ = 0;       // bytes of the first message that are sent
  base::Poller* poller_ = nullptr;
  base::Poller::Id watch_ = 0;
  bool watches_room_ = false;  // the poller reports room in the socket
};

}  // namespace viaduct::meet::embedded
