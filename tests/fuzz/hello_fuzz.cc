// Any payloads of a session's frames: no crash, and an accepted payload encodes to the same bytes.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "agent/session/hello.h"
#include "agent/session/messages.h"
#include "base/net/crypto.h"
#include "fuzz/samples.h"

namespace {

using namespace viaduct::agent;
using viaduct::base::ByteSpan, viaduct::base::decode, viaduct::base::encode;

template <class Message>
void roundTrip(ByteSpan payload) {
  const auto message = decode<Message>(payload);
  if (message && !viaduct::base::sameBytes(encode(*message), payload)) std::abort();
}

// Decoding makes texts for people printable, so a decoded message may encode to other bytes.
template <class Message>
void secondRoundTrip(ByteSpan payload) {
  if (const auto message = decode<Message>(payload)) roundTrip<Message>(encode(*message));
}

void backend(ByteSpan payload) {
  const auto message = decode<BackendMessage>(payload);
  if (message && message->bytes.size() > payload.size()) std::abort();
}

template <class Message>
void addSample(std::vector<viaduct::fuzz::Sample>& out, std::uint8_t kind, const Message& message) {
  viaduct::base::Bytes bytes{std::byte{kind}};
  viaduct::base::append(bytes, message);
  out.push_back(viaduct::fuzz::sampleOf(bytes));
}

}  // namespace

namespace viaduct::fuzz {
std::vector<Sample> samples() {
  std::vector<Sample> out;
  const base::Bytes blob(20, std::byte{7});
  addSample(out, 0,
            Hello{.name = "a",
                  .boot = "boot",
                  .unix_name = "viaduct-a",
                  .addresses = {"127.0.0.1:1", "[::1]:2"},
                  .last_epoch = 4,
                  .detect_ms = 2000,
                  .backends = {{"local", blob}, {"tcp", {}}}});
  addSample(out, 1,
            PinMessage{.info = {.label = "kv", .address = 4096, .bytes = 4096, .slot = 3},
                       .keys = {{"local", blob}}});
  addSample(out, 2, UnpinMessage{.slot = 3});
  addSample(out, 3, ByeMessage{.why = "done"});
  addSample(out, 4, RefuseMessage{{.code = Code::kDenied, .detail = "no"}});
  addSample(out, 5, ResumeMessage{.epoch = 1, .heard = 7});
  addSample(out, 6, LeaseEndedMessage{.number = 3, .outcome = LeaseState::kRevoked});
  addSample(out, 7, LeaseMessage{.number = 3});
  addSample(out, 8, DrainingMessage{.number = 1});
  addSample(out, 9, DrainLeftMessage{.number = 1, .transfers = 2, .bytes = 3});
  base::Bytes message{std::byte{10}};
  base::append(message, BackendMessage{.backend = "tcp"});
  out.push_back(sampleOf(message));
  return out;
}
}  // namespace viaduct::fuzz

// The first byte selects the kind of message of the others.
// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer calls it so
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto payload = std::as_bytes(std::span(data + 1, size - 1));
  switch (data[0] % 11) {
    case 0:
      roundTrip<Hello>(payload);
      break;
    case 1:
      roundTrip<PinMessage>(payload);
      break;
    case 2:
      roundTrip<UnpinMessage>(payload);
      break;
    case 3:
      secondRoundTrip<ByeMessage>(payload);
      break;
    case 4:
      secondRoundTrip<RefuseMessage>(payload);
      break;
    case 5:
      roundTrip<ResumeMessage>(payload);
      break;
    case 6:
      roundTrip<LeaseEndedMessage>(payload);
      break;
    case 7:
      roundTrip<LeaseMessage>(payload);
      break;
    case 8:
      roundTrip<DrainingMessage>(payload);
      break;
    case 9:
      roundTrip<DrainLeftMessage>(payload);
      break;
    default:
      backend(payload);
  }
  return 0;
}
