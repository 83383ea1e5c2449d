// Any bytes as answers of an API server, as Leases, or as a kubeconfig: no crash, and an accepted
// Lease encodes to one with the same meaning.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "fuzz/samples.h"
#include "meet/kubernetes/access.h"
#include "meet/kubernetes/names.h"
#include "meet/kubernetes/objects.h"
#include "meet/kubernetes/times.h"
#include "meet/kubernetes/yaml.h"

namespace {

using namespace viaduct::meet::kubernetes;

void answer(const std::string& text) {
  (void)parsePage(text);
  (void)parseRefusal(text);
  (void)parseEvent(text);
  const auto lease = parseLease(text);
  if (!lease) return;
  const auto body = leaseJson(*lease);
  if (!body) return;
  const auto again = parseLease(*body);
  if (!again || again->name != lease->name || again->version != lease->version ||
      again->holder != lease->holder || again->renewed != lease->renewed)
    std::abort();
  if (lease->value && again->value != lease->value) std::abort();
}

void text(const std::string& bytes) {
  const auto time = parseMicroTime(bytes);
  if (time && parseMicroTime(microTime(*time)) != time) std::abort();
  (void)parseHttpDate(bytes);
  (void)parsePlaceName(bytes);
  const std::string label = labelOf(bytes);
  if (label.empty() || label.size() > 63) std::abort();
}

void config(const std::string& bytes) {
  (void)parseYaml(bytes);
  (void)accessFromKubeconfig(bytes, "config");
}

viaduct::fuzz::Sample sample(char kind, const std::string& bytes) {
  const std::string all = kind + bytes;
  return {all.begin(), all.end()};
}

}  // namespace

namespace viaduct::fuzz {
std::vector<Sample> samples() {
  const std::string metadata = R"("metadata":{"name":"a","namespace":"n","uid":"u",)"
                               R"("resourceVersion":"7","labels":{"viaduct/group":"g"},)"
                               R"("annotations":{"viaduct/agent":"a","viaduct/value":"AQEAAAB4"}})";
  const std::string lease = R"({"apiVersion":"coordination.k8s.io/v1","kind":"Lease",)" + metadata +
                            R"(,"spec":{"holderIdentity":"h","leaseDurationSeconds":15,)"
                            R"("renewTime":"2026-09-21T14:13:20.000007Z","leaseTransitions":1}})";
  const std::string status =
      R"({"kind":"Status","code":410,"reason":"Expired","message":"old","details":{"kind":"x"}})";
  return {
      sample(0, lease),
      sample(0, status),
      sample(0, R"({"type":"MODIFIED","object":)" + lease + "}"),
      sample(0, R"({"type":"ERROR","object":)" + status + "}"),
      sample(0, R"({"kind":"LeaseList","metadata":{"resourceVersion":"9","continue":"c"},)"
                R"("items":[)" +
                    lease + "]}"),
      sample(1, "2026-09-21T14:13:20.000007Z"),
      sample(1, "Mon, 21 Sep 2026 14:13:20 GMT"),
      sample(1, "serving/decode"),
      sample(2,
             "current-context: c\nclusters:\n- name: k\n  cluster:\n    server: https://k:1\n"
             "contexts:\n- name: c\n  context: {\"cluster\":\"k\",\"user\":\"u\"}\nusers:\n"
             "- name: 'u'\n  user:\n    token: \"t\"  # secret\n"),
  };
}
}  // namespace viaduct::fuzz

// The first byte selects the parser for the others.
// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer calls it so
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 3) {
    case 0:
      answer(rest);
      break;
    case 1:
      text(rest);
      break;
    default:
      config(rest);
  }
  return 0;
}
