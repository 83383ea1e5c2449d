// Any bytes as etcd's answers, or as values of our keys: no crash, and an accepted message encodes
// to the same bytes.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "fuzz/samples.h"
#include "meet/etcd/base64.h"
#include "meet/etcd/endpoints.h"
#include "meet/etcd/gateway.h"
#include "meet/etcd/identity.h"
#include "meet/etcd/messages.h"

namespace {

using namespace viaduct::meet::etcd;

void answer(const std::string& text) {
  (void)parseTxn(text);
  (void)parseGrant(text);
  (void)parseKeepAlive(text);
  (void)parseToken(text);
  (void)parseRefusal(text);
  const auto line = parseWatch(text);
  if (line && line->events.size() > text.size()) std::abort();
}

template <class Decoded>
void roundTrip(const Decoded& message, const std::string& bytes) {
  if (message && encode(*message) != bytes) std::abort();
}

void value(const std::string& bytes) {
  roundTrip(decodeHead(bytes), bytes);
  roundTrip(decodeUp(bytes), bytes);
  roundTrip(decodeTrouble(bytes), bytes);
  roundTrip(decodePart(bytes), bytes);
  roundTrip(decodeEntry(bytes), bytes);
  roundTrip(decodeCall(bytes), bytes);
  (void)decodeAnswer(bytes);
  (void)decodeLead(bytes);
  (void)decodeValues(bytes);
  if (const auto roster = decodeRoster(bytes); roster && encodeRoster(*roster) != bytes)
    std::abort();
}

void text(const std::string& bytes) {
  (void)parseEndpoints(bytes);
  (void)isProvablyDead(bytes);
  const auto decoded = fromBase64(bytes);
  if (decoded && toBase64(*decoded).size() != bytes.size()) std::abort();
}

viaduct::fuzz::Sample sample(char kind, const std::string& bytes) {
  const std::string all = kind + bytes;
  return {all.begin(), all.end()};
}

}  // namespace

namespace viaduct::fuzz {
std::vector<Sample> samples() {
  const std::string kv =
      R"({"key":"aw==","value":"dg==","create_revision":"3","mod_revision":"4"})";
  return {
      sample(0, R"({"header":{"revision":"7"},"succeeded":true,"responses":[{"response_range":)"
                R"({"kvs":[)" +
                    kv + "]}}]}"),
      sample(0, R"({"result":{"header":{"revision":"9"},"watch_id":"2","events":[{"kv":)" + kv +
                    R"(},{"type":"DELETE","kv":)" + kv + "}]}}"),
      sample(0, R"({"result":{"canceled":true,"compact_revision":"12"}})"),
      sample(0, R"({"error":{"grpc_code":14,"message":"gone"}})"),
      sample(1, encode(GroupHead{.instance = 5, .identity = "boot|1 2", .who = "a"})),
      sample(1, encode(UpMessage(JoinMessage{.size = 2, .rank = 1, .name = "a", .about = "b"}))),
      sample(1, encode(UpMessage(ValueMessage{3, "value"}))),
      sample(1, encode(AnswerMessage{Error{.code = Code::kBusy, .detail = "no"}})),
      sample(1, encode(LeadMessage{.leader = 4, .seen = 9, .rounds = 3, .gone = {1, 2}})),
      sample(1, encode(CallMessage{7})),
      sample(1, encode(PartMessage{.round = 1, .part = 0, .parts = 2, .bytes = "x"})),
      sample(1, encodeRoster({{1, 2, {0, "a", "b"}}, {3, 4, {1, "c", "d"}}})),
      sample(1, encodeValues({"a", "b"})),
      sample(2, "http://a:1,https://[::1]:2/"),
      sample(2, ownIdentity()),
  };
}
}  // namespace viaduct::fuzz

// The first byte selects the parser for the others.
// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer calls it so
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  switch (data[0] % 3) {
    case 0:
      answer(bytes);
      break;
    case 1:
      value(bytes);
      break;
    default:
      text(bytes);
  }
  return 0;
}
