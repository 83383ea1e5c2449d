// An endpoint that moves data by messages. The peer's process checks the key of the memory, and
// then copies. It is for TCP, over which UCX's own puts make the peer's process copy without such a
// check. Threads: as move::Endpoint.
#pragma once

#include <array>
#include <memory>
#include <unordered_map>
#include <vector>

#include "backends/ucx/message.h"
#include "backends/ucx/reachable.h"
#include "backends/ucx/ucx_endpoint.h"
#include "move/linked_queue.h"

namespace viaduct::ucx {

class MessageEndpoint final : public UcxEndpoint {
 public:
  static Result<std::unique_ptr<MessageEndpoint>> open(const Context& context, Reachable& memory);
  ~MessageEndpoint() override;
  MessageEndpoint(const MessageEndpoint&) = delete;
  MessageEndpoint& operator=(const MessageEndpoint&) = delete;

  const Bytes& address() const override { return address_; }
  Status join(const Bytes& peer) override;
  RemoteKey keyOf(std::uint32_t generation, const Bytes& packed) override;
  void retire(std::uint32_t generation) override { keys_.erase(generation); }
  void sweep() override {}

  Posted post(OpKind kind, std::span<const Piece> pieces, RemoteKey key) override;
  Flush flush() override;
  bool ended(Flush& flush) override;
  void letGo(Flush& flush) override { flush.request = nullptr; }
  bool progress() override;

 private:
  // Our message, until UCX no longer uses it and, for a read, until the answer has arrived.
  struct PendingMessage {
    MessageEndpoint* owner = nullptr;
    Message message = {};
    std::array<std::byte, Message::kLongestHead> head = {};
    // Our memory: the source of a write's bytes, or the target of a read's answer.
    std::array<ucp_dt_iov_t, Message::kMostExtents> memory = {};
    std::uint32_t parts = 0;
    std::uint64_t bytes = 0;
    std::uintptr_t flush = 0;  // number of the first flush that covers this message
    bool sending = false, asking = false, leaving = false;
    PendingMessage* next = nullptr;  // in one list at a time
  };
  using PendingQueue = move::LinkedQueue<PendingMessage>;

  MessageEndpoint(const Context& context, Reachable& memory)
      : UcxEndpoint(context), reachable_(memory) {}
  Status fitHeads();
  void waitForTheFirst();
  PendingMessage& blank(Message::Kind kind);
  void letGo(PendingMessage& pending);
  void send(PendingMessage& pending);
  void sendOpen();
  static void sent(void* request, ucs_status_t status, void* pending);

  static ucs_status_t came(void* self, const void* head, std::size_t head_bytes, void* data,
                           std::size_t bytes, const ucp_am_recv_param_t* how);
  void take(const Message& message, std::span<const std::byte> data);
  void takeWrite(const Message& message, std::span<const std::byte> data);
  void takeRead(const Message& message);
  void takeData(std::span<const std::byte> data);
  void takeFlushed();
  void foreign(Code code, std::string detail);

  Reachable& reachable_;
  std::uint64_t token_ = 0, their_token_ = 0;
  std::uint32_t most_extents_ = 0;  // extents for which the head of our messages has room
  Bytes address_;                   // our token, then UCX's address
  std::unordered_map<std::uint32_t, std::uint64_t> keys_;
  std::vector<std::unique_ptr<PendingMessage>> pending_;
  PendingMessage* open_ =
      nullptr;            // has room for more pieces; the next flush sends it at the latest
  PendingQueue blank_;    // unused messages
  PendingQueue asked_;    // our reads, until their data arrives
  PendingQueue leaving_;  // our writes that UCX has not finished sending
  PendingQueue answers_;  // answers to the peer; progress() sends them, not the callback
  std::uint64_t sent_ = 0, heard_ = 0;  // numbers of messages sent and received
  std::uintptr_t flushes_ = 0, flushed_ = 0;
};

}  // namespace viaduct::ucx
