// By messages: the peer's process copies, and looks first at whether the memory is one that it has
// given a key to. For transports that would do so anyway, without looking: TCP. Threads: under the
// agent's lock.
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
  // A message of ours, until UCX has no more use for it and, where it asks, the answer is here.
  struct PendingMessage {
    MessageEndpoint* owner = nullptr;
    Message message = {};
    std::array<std::byte, Message::kLongestHead> head = {};
    // Here: where its bytes are, or its answer's go.
    std::array<ucp_dt_iov_t, Message::kMostExtents> memory = {};
    std::uint32_t parts = 0;
    std::uint64_t bytes = 0;
    std::uintptr_t flush = 0;  // the first whose end says that this is over
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
  std::uint32_t most_extents_ = 0;  // that the head of a message of ours has room for
  Bytes address_;                   // the token, then UCX's
  std::unordered_map<std::uint32_t, std::uint64_t> keys_;
  std::vector<std::unique_ptr<PendingMessage>> pending_;
  PendingMessage* open_ = nullptr;  // has room for more, and is sent with the flush at the latest
  PendingQueue blank_;
  PendingQueue asked_;                  // reads of ours, until their data comes
  PendingQueue leaving_;                // writes of ours that UCX has not taken at once
  PendingQueue answers_;                // to the peer: sent after what has called us is done
  std::uint64_t sent_ = 0, heard_ = 0;  // messages
  std::uintptr_t flushes_ = 0, flushed_ = 0;
};

}  // namespace viaduct::ucx
