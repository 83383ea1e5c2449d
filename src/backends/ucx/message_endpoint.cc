#include "backends/ucx/message_endpoint.h"

#include <sys/uio.h>
#include <viaduct/deadline.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <utility>

#include "base/log.h"

namespace viaduct::ucx {
namespace {

constexpr unsigned kMessages = 1;  // the id of our active messages at UCX
// The longest wait for the peer's connection. Both ends take a few milliseconds, unless the machine
// is busy.
constexpr auto kConnecting = std::chrono::milliseconds(100);
// More messages than the windows of both ends ever need. A peer that makes us need more sends
// requests without receiving the answers.
constexpr std::size_t kMostEnvelopes = 8192;

}  // namespace

Result<std::unique_ptr<MessageEndpoint>> MessageEndpoint::open(const Context& context,
                                                               Reachable& memory) {
  const LogCapture capture;
  std::unique_ptr<MessageEndpoint> out(new MessageEndpoint(context, memory));
  VIADUCT_CHECK(out->openWorker());
  VIADUCT_CHECK(out->fitHeads());
  ucp_am_handler_param_t handler{};
  handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                       UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
  handler.id = kMessages;
  handler.flags = UCP_AM_FLAG_WHOLE_MSG;
  handler.cb = &MessageEndpoint::came;
  handler.arg = out.get();
  const auto status = out->ucx_.ucp_worker_set_am_recv_handler(out->worker_, &handler);
  if (status != UCS_OK) return ucxError(Code::kDevice, "ucp_worker_set_am_recv_handler", status);
  VIADUCT_TRY(out->token_, base::secretNumber());
  out->address_ = base::Writer().put(out->token_).raw(out->UcxEndpoint::address()).take();
  return out;
}

// Sets the longest head. UCX ends the process if a head is longer than its limit.
Status MessageEndpoint::fitHeads() {
  ucp_worker_attr_t worker{};
  worker.field_mask = UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER;
  if (const auto status = ucx_.ucp_worker_query(worker_, &worker); status != UCS_OK)
    return ucxError(Code::kDevice, "ucp_worker_query", status);
  const std::size_t room = std::min(worker.max_am_header, Message::kLongestHead);
  if (room < Message::kShortestHead + Message::kHeadPerExtent)
    return Error{.code = Code::kUnsupported,
                 .operation = "ucp_worker_query",
                 .detail = "a message's head may have " + std::to_string(room) + " bytes",
                 .device = "ucx",
                 .remedy = "let UCX's packets be longer (UCX_TCP_TX_SEG_SIZE)"};
  most_extents_ =
      static_cast<std::uint32_t>((room - Message::kShortestHead) / Message::kHeadPerExtent);
  return Ok{};
}

Status MessageEndpoint::join(const Bytes& peer) {
  base::Reader in(peer);
  their_token_ = in.get<std::uint64_t>();
  const auto address = in.raw(in.left());
  return UcxEndpoint::join({address.begin(), address.end()});
}

MessageEndpoint::~MessageEndpoint() {
  waitForTheFirst();
  closeEndpoint();
  closeWorker();
}

// Waits for the peer's first message, which shows that the peer has connected, but no longer than
// kConnecting after join(). Closing while the peer connects may end the peer's process
// (docs/gotchas/ucx.md).
void MessageEndpoint::waitForTheFirst() {
  if (ep_ == nullptr || broken_) return;
  const auto until = joined_at_ + kConnecting;
  while (heard_ == 0 && !broken_ && Clock::now() < until) progress();
}

MessageEndpoint::PendingMessage& MessageEndpoint::blank(Message::Kind kind) {
  if (blank_.empty()) {
    blank_.push(*pending_.emplace_back(std::make_unique<PendingMessage>()));
    blank_.front()->owner = this;
    if (pending_.size() > kMostEnvelopes)
      foreign(Code::kProtocol, "the peer asks, but does not take the answers");
  }
  PendingMessage& one = blank_.pop();
  one.message.kind = kind;
  one.message.flush = false;
  one.message.count = 0;
  one.parts = 0;
  one.bytes = 0;
  return one;
}

void MessageEndpoint::letGo(PendingMessage& pending) {
  if (!pending.sending && !pending.asking && !pending.leaving) blank_.push(pending);
}

void MessageEndpoint::foreign(Code code, std::string detail) {
  breakWith({.code = code,
             .operation = "ucx message",
             .detail = std::move(detail),
             .device = "ucx",
             .cause = "the peer runs another version, or another program"});
}

// Sends a message. Messages arrive in order, because short messages use one lane, and UCX keeps the
// order of a lane.
void MessageEndpoint::send(PendingMessage& pending) {
  if (broken_) return letGo(pending);
  pending.message.token = their_token_;
  pending.message.number = ++sent_;
  pending.flush = flushes_ + 1;
  const std::size_t head = encode(pending.message, pending.head);
  ucp_request_param_t params{};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                        UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_MEMORY_TYPE |
                        UCP_OP_ATTR_FIELD_DATATYPE;
  params.flags = UCP_AM_SEND_FLAG_EAGER;
  params.cb.send = &MessageEndpoint::sent;
  params.user_data = &pending;
  params.memory_type = UCS_MEMORY_TYPE_HOST;
  const bool asks = pending.message.kind == Message::Kind::kRead;
  const std::uint32_t parts = asks ? 0 : pending.parts;
  const void* from = pending.memory.data();
  std::size_t count = parts;
  params.datatype = ucp_dt_make_iov();
  if (parts <= 1) {
    params.datatype = ucp_dt_make_contig(1);
    from = parts == 0 ? nullptr : pending.memory[0].buffer;
    count = parts == 0 ? 0 : pending.memory[0].length;
  }
  pending.asking = asks;
  if (asks) asked_.push(pending);
  void* const request =
      ucx_.ucp_am_send_nbx(ep_, kMessages, pending.head.data(), head, from, count, &params);
  pending.sending = request != nullptr && !UCS_PTR_IS_ERR(request);
  pending.leaving = pending.sending && pending.message.kind == Message::Kind::kWrite;
  if (pending.leaving) leaving_.push(pending);
  if (UCS_PTR_IS_ERR(request)) breakWith(UCS_PTR_STATUS(request));
  letGo(pending);
}

void MessageEndpoint::sent(void* request, ucs_status_t status, void* user_data) {
  auto& pending = *static_cast<PendingMessage*>(user_data);
  MessageEndpoint& self = *pending.owner;
  self.ucx_.ucp_request_free(request);
  pending.sending = false;
  if (status != UCS_OK) self.breakWith(status);
  if (!pending.leaving) return self.letGo(pending);
  while (!self.leaving_.empty() && !self.leaving_.front()->sending) {
    PendingMessage& gone = self.leaving_.pop();
    gone.leaving = false;
    self.letGo(gone);
  }
}

RemoteKey MessageEndpoint::keyOf(std::uint32_t generation, const Bytes& packed) {
  if (const auto known = keys_.find(generation); known != keys_.end()) return &known->second;
  base::Reader in(packed);
  const auto key = in.get<std::uint64_t>();
  return in.finished() ? &keys_.emplace(generation, key).first->second : nullptr;
}

void MessageEndpoint::sendOpen() {
  if (open_ != nullptr) send(*std::exchange(open_, nullptr));
}

Posted MessageEndpoint::post(OpKind kind, std::span<const Piece> pieces, RemoteKey key) {
  const LogCapture capture;
  if (broken_) return {};
  const auto messages = kind == OpKind::kWrite ? Message::Kind::kWrite : Message::Kind::kRead;
  const std::uint64_t theirs = *static_cast<const std::uint64_t*>(key);
  if (open_ != nullptr && (open_->message.kind != messages || open_->message.key != theirs))
    sendOpen();
  for (const Piece& piece : pieces)
    for (std::uint64_t offset = 0; offset < piece.bytes;) {
      if (open_ == nullptr) open_ = &blank(messages);
      PendingMessage& open = *open_;
      const std::uint64_t part = std::min(piece.bytes - offset, Message::kMostBytes - open.bytes);
      open.message.key = theirs;
      open.message.extents[open.message.count++] = {piece.there + offset, part};
      open.memory[open.parts++] = {piece.here + offset, part};
      open.bytes += part;
      offset += part;
      if (open.parts == most_extents_ || open.bytes == Message::kMostBytes) sendOpen();
    }
  return {.pieces = static_cast<std::uint32_t>(pieces.size())};
}

Flush MessageEndpoint::flush() {
  const LogCapture capture;
  if (open_ == nullptr) open_ = &blank(Message::Kind::kFlush);
  open_->message.flush = true;
  sendOpen();
  // NOLINTNEXTLINE(performance-no-int-to-ptr): Flush::request has the number of the flush
  return {reinterpret_cast<void*>(++flushes_)};
}

bool MessageEndpoint::ended(Flush& flush) {
  if (broken_ || flush.request == nullptr) return !broken_;
  const auto number = reinterpret_cast<std::uintptr_t>(flush.request);
  if (number > flushed_) return false;
  // Even if the peer reports the flush as ended, UCX may still read the source of a covered write.
  if (!leaving_.empty() && leaving_.front()->flush <= number) return false;
  letGo(flush);
  return true;
}

bool MessageEndpoint::progress() {
  const LogCapture capture;
  const bool moved = ucx_.ucp_worker_progress(worker_) != 0;
  while (!answers_.empty()) send(answers_.pop());
  return moved;
}

ucs_status_t MessageEndpoint::came(void* self, const void* head, std::size_t head_bytes, void* data,
                                   std::size_t bytes, const ucp_am_recv_param_t* how) {
  auto& me = *static_cast<MessageEndpoint*>(self);
  const std::span header(static_cast<const std::byte*>(head), head_bytes);
  if (me.broken_ || tokenOf(header) != me.token_) return UCS_OK;
  const bool here = (how->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0;
  const auto message = here ? decode(header, bytes) : std::nullopt;
  if (message && message->number == ++me.heard_)
    me.take(*message, {static_cast<const std::byte*>(data), bytes});
  else
    me.foreign(Code::kProtocol,
               message ? "a message is missing, or out of order" : "a message that cannot be read");
  return UCS_OK;
}

void MessageEndpoint::take(const Message& message, std::span<const std::byte> data) {
  switch (message.kind) {
    case Message::Kind::kWrite:
      takeWrite(message, data);
      break;
    case Message::Kind::kRead:
      return takeRead(message);
    case Message::Kind::kData:
      takeData(data);
      break;
    case Message::Kind::kFlush:
    case Message::Kind::kFlushed:
      break;
  }
  if (!message.flush || broken_) return;
  const bool answers =
      message.kind == Message::Kind::kData || message.kind == Message::Kind::kFlushed;
  if (answers) return takeFlushed();
  PendingMessage& here = blank(Message::Kind::kFlushed);
  here.message.flush = true;
  answers_.push(here);
}

void MessageEndpoint::takeFlushed() {
  if (++flushed_ > flushes_) foreign(Code::kProtocol, "an answer without a request");
  // Data of a covered read that arrives later would land in memory of an ended transfer.
  if (!asked_.empty() && asked_.front()->flush <= flushed_)
    foreign(Code::kProtocol, "an answer out of order");
}

void MessageEndpoint::takeWrite(const Message& message, std::span<const std::byte> data) {
  std::array<iovec, Message::kMostExtents> into;
  std::size_t parts = 0;
  for (const Extent& one : message.list()) {
    std::byte* const place = reachable_.find(message.key, one.address, one.bytes, OpKind::kWrite);
    if (place == nullptr)
      return foreign(Code::kDenied, "the peer writes outside of writable registered memory");
    into[parts++] = {place, one.bytes};
  }
  if (context_.copy().copy(std::span<const iovec>(into).first(parts), data.data())) return;
  // The endpoint ends. The peer's next endpoint asks for the remote keys, and gets none for this
  // memory.
  reachable_.drop(message.key);
  breakWith({.code = Code::kDenied,
             .operation = "ucx message",
             .detail = "memory was unmapped or protected after it was pinned",
             .os_errno = EFAULT,
             .device = "ucx",
             .remedy = "keep memory mapped and accessible while its Pin exists"});
  base::log(base::LogLevel::kWarning,
            "ucx: memory at {:#x} was unmapped or protected after it was pinned: peers cannot "
            "reach it any more",
            message.list().front().address);
}

void MessageEndpoint::takeRead(const Message& message) {
  PendingMessage& answer = blank(Message::Kind::kData);
  answer.message.flush = message.flush;
  for (const Extent& one : message.list()) {
    std::byte* const from = reachable_.find(message.key, one.address, one.bytes, OpKind::kRead);
    if (from == nullptr) {
      letGo(answer);
      return foreign(Code::kDenied, "the peer reads unregistered memory");
    }
    answer.memory[answer.parts++] = {from, one.bytes};
  }
  answers_.push(answer);
}

void MessageEndpoint::takeData(std::span<const std::byte> data) {
  if (asked_.empty() || asked_.front()->bytes != data.size())
    return foreign(Code::kProtocol, "an answer to another request");
  PendingMessage& question = asked_.pop();
  std::array<iovec, Message::kMostExtents> into;
  for (std::uint32_t i = 0; i < question.parts; ++i)
    into[i] = {question.memory[i].buffer, question.memory[i].length};
  const bool placed =
      context_.copy().copy(std::span<const iovec>(into).first(question.parts), data.data());
  question.asking = false;
  letGo(question);
  if (!placed)
    breakWith({.code = Code::kDenied,
               .operation = "ucx message",
               .detail = "the destination of a read was unmapped or protected",
               .device = "ucx",
               .remedy = "keep memory mapped and accessible while its Pin exists"});
}

}  // namespace viaduct::ucx
