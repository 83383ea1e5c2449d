#include "agent/session/messages.h"

#include <algorithm>

#include "agent/session/limits.h"
#include "agent/session/pin_wire.h"

namespace viaduct::agent {

void writePin(base::Writer& w, const PinInfo& pin) {
  w.put(pin.slot).put(static_cast<std::uint8_t>(pin.kind)).put(pin.device);
  w.put(pin.address).put(pin.bytes).text(pin.label);
}

PinInfo readPin(LimitedReader& in) {
  PinInfo pin;
  pin.slot = in.raw().get<std::uint32_t>();
  const auto kind = in.raw().get<std::uint8_t>();
  pin.kind = static_cast<MemoryKind>(kind);
  pin.device = in.raw().get<std::uint32_t>();
  pin.address = in.raw().get<std::uint64_t>();
  pin.bytes = in.raw().get<std::uint64_t>();
  pin.label = in.text(kMaxLabelBytes);
  // Refused here, so that address + bytes never overflows later.
  const bool wraps = pin.address + pin.bytes < pin.address;
  if (kind > static_cast<std::uint8_t>(MemoryKind::kObject) || wraps) in.refuse();
  return pin;
}

void PinMessage::encode(base::Bytes& out) const {
  base::Writer w(std::move(out));
  writePin(w, info);
  writeBlobs(w, keys);
  out = w.take();
}

Result<PinMessage> PinMessage::decode(std::span<const std::byte> payload) {
  LimitedReader in(payload);
  PinMessage message{.info = readPin(in)};
  message.keys = in.blobs();
  if (!in.finished()) return in.error("pin");
  return message;
}

std::size_t PinMessage::cost() const {
  constexpr std::size_t kOfTables = 384;
  std::size_t bytes = kOfTables + info.label.size();
  for (const auto& [backend, key] : keys) bytes += backend.size() + key.size();
  return bytes;
}

namespace {

void encodeSlot(std::uint32_t slot, base::Bytes& out) {
  base::Writer w(std::move(out));
  w.put(slot);
  out = w.take();
}

template <class Message>
Result<Message> decodeSlot(std::span<const std::byte> payload, std::string_view what) {
  LimitedReader in(payload);
  const Message message{.slot = in.raw().get<std::uint32_t>()};
  if (!in.finished()) return in.error(what);
  return message;
}

}  // namespace

void ReadOnlyMessage::encode(base::Bytes& out) const { encodeSlot(slot, out); }

Result<ReadOnlyMessage> ReadOnlyMessage::decode(std::span<const std::byte> payload) {
  return decodeSlot<ReadOnlyMessage>(payload, "read-only");
}

void UnpinMessage::encode(base::Bytes& out) const { encodeSlot(slot, out); }

Result<UnpinMessage> UnpinMessage::decode(std::span<const std::byte> payload) {
  return decodeSlot<UnpinMessage>(payload, "unpin");
}

void BackendMessage::encodeHead(std::string_view backend, base::Bytes& out) {
  base::Writer w(std::move(out));
  w.text(backend);
  out = w.take();
}

Result<BackendMessage> BackendMessage::decode(std::span<const std::byte> payload) {
  LimitedReader in(payload);
  const auto name = in.sized(kMaxNameBytes);
  if (!in.ok()) return in.error("backend message");
  return BackendMessage{.backend = {reinterpret_cast<const char*>(name.data()), name.size()},
                        .bytes = in.raw().raw(in.raw().left())};
}

void ByeMessage::encode(base::Bytes& out) const {
  base::Writer w(std::move(out));
  w.text(std::string_view(why).substr(0, kMaxByeBytes));
  out = w.take();
}

Result<ByeMessage> ByeMessage::decode(std::span<const std::byte> payload) {
  LimitedReader in(payload);
  ByeMessage message{.why = in.text(kMaxByeBytes)};
  if (!in.finished()) return in.error("bye");
  return message;
}

void ResumeMessage::encode(base::Bytes& out) const {
  base::Writer w(std::move(out));
  w.put(epoch).put(heard).raw(std::as_bytes(std::span(proof)));
  out = w.take();
}

Result<ResumeMessage> ResumeMessage::decode(std::span<const std::byte> payload) {
  LimitedReader in(payload);
  ResumeMessage message;
  message.epoch = in.raw().get<std::uint64_t>();
  message.heard = in.raw().get<std::uint64_t>();
  message.proof = in.raw().array<sizeof message.proof>();
  if (!in.finished()) return in.error("resume");
  return message;
}

void RefuseMessage::encode(base::Bytes& out) const {
  base::Writer w(std::move(out));
  w.put(static_cast<std::uint8_t>(why.code));
  for (const std::string* text : {&why.operation, &why.detail, &why.cause, &why.remedy})
    w.text(std::string_view(*text).substr(0, kMaxReasonBytes));
  out = w.take();
}

Result<RefuseMessage> RefuseMessage::decode(std::span<const std::byte> payload) {
  LimitedReader in(payload);
  RefuseMessage message;
  const auto code = in.raw().get<std::uint8_t>();
  message.why.code = static_cast<Code>(code);
  for (std::string* text :
       {&message.why.operation, &message.why.detail, &message.why.cause, &message.why.remedy})
    *text = in.text(kMaxReasonBytes);
  if (code > static_cast<std::uint8_t>(Code::kProtocol)) in.refuse();
  if (!in.finished()) return in.error("refusal");
  return message;
}

}  // namespace viaduct::agent
