// Any bytes as etcd's answers, or as values of our keys: no crash, and an accepted message encodes
// to the same bytes.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/base64.h"
#include "fuzz/samples.h"
#include "meet/etcd/endpoints.h"
#include "meet/etcd/gateway.h"
#include "meet/groups/server_record.h"
#include "meet/identity.h"

namespace {

using namespace viaduct::meet;
using namespace viaduct::meet::etcd;
using viaduct::meet::groups::ServerRecord;

void answer(const std::string& text) {
  (void)parseCreate(text);
  (void)parseRange(text);
  (void)parseGrant(text);
  (void)parseKeepAlive(text);
  (void)parseToken(text);
  (void)parseRefusal(text);
  const auto line = parseWatch(text);
  if (line && line->events.size() > text.size()) std::abort();
}

template <class Decoded>
void roundTrip(const Decoded& message, const std::string& bytes) {
  if (message && encodeRecord(*message) != bytes) std::abort();
}

void value(const std::string& bytes) {
  roundTrip(decodeRecord<Entry>(bytes), bytes);
  roundTrip(decodeRecord<ServerRecord>(bytes), bytes);
}

void text(const std::string& bytes) {
  (void)parseEndpoints(bytes);
  (void)isProvablyDead(bytes);
  const auto decoded = viaduct::base::fromBase64(bytes);
  if (decoded && viaduct::base::toBase64(*decoded).size() != bytes.size()) std::abort();
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
      sample(0, R"({"header":{"revision":"7"},"kvs":[)" + kv + "]}"),
      sample(0, R"({"result":{"header":{"revision":"9"},"events":[{"kv":)" + kv +
                    R"(},{"type":"DELETE","kv":)" + kv + "}]}}"),
      sample(0, R"({"result":{"canceled":true,"compact_revision":"12"}})"),
      sample(0, R"({"error":{"grpc_code":14,"message":"gone"}})"),
      sample(1, encodeRecord(Entry{"boot|1 2", "value"})),
      sample(1,
             encodeRecord(ServerRecord{.secret = {5}, .name = "a", .addresses = {"10.0.0.1:5"}})),
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
