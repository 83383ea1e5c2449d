#include "measure/p2p/request.h"

#include <utility>

namespace viaduct::measure::p2p {
namespace {

// "VP2P", and the version of what follows.
constexpr std::uint32_t kMagic = 0x50325056;
constexpr std::uint8_t kVersion = 1;

Error garbled() {
  return {.code = Code::kProtocol,
          .operation = "p2p",
          .detail = "a note that makes no sense",
          .cause = "the other end is no `viaduct p2p`, or one of another version",
          .remedy = "run the same version of viaduct on both hosts"};
}

base::Writer begin() {
  base::Writer out;
  out.put(kMagic).put(kVersion);
  return out;
}

bool begins(base::Reader& in) {
  const auto magic = in.get<std::uint32_t>();
  return in.get<std::uint8_t>() == kVersion && magic == kMagic;
}

}  // namespace

base::Bytes encode(const Request& r) {
  base::Writer out = begin();
  out.put(static_cast<std::uint8_t>(r.verb)).put(r.number).put(r.bytes).text(r.label);
  return out.put(r.seed).put(r.epoch).take();
}

Result<Request> decodeRequest(std::span<const std::byte> note) {
  base::Reader in(note);
  const bool known = begins(in);
  Request out{.verb = static_cast<Request::Verb>(in.get<std::uint8_t>())};
  out.number = in.get<std::uint64_t>();
  out.bytes = in.get<std::uint64_t>();
  out.label = in.text();
  out.seed = in.get<std::uint64_t>();
  out.epoch = in.get<std::uint64_t>();
  if (!known || !in.finished() || out.verb > Request::Verb::kLeave) return garbled();
  return out;
}

base::Bytes encode(const Answer& answer) {
  base::Writer out = begin();
  out.put(answer.number).put(std::uint8_t{answer.value ? std::uint8_t{1} : std::uint8_t{0}});
  if (answer.value) return out.text(*answer.value).take();
  const Error& e = answer.value.error();
  out.put(static_cast<std::uint8_t>(e.code)).text(e.operation).text(e.detail);
  out.put(static_cast<std::uint32_t>(e.os_errno)).text(e.device).text(e.cause);
  return out.text(e.remedy).take();
}

Result<Answer> decodeAnswer(std::span<const std::byte> note) {
  base::Reader in(note);
  const bool known = begins(in);
  Answer out{.number = in.get<std::uint64_t>()};
  if (in.get<std::uint8_t>() == 1) {
    out.value = in.text();
  } else {
    Error e;
    e.code = static_cast<Code>(in.get<std::uint8_t>());
    e.operation = in.text();
    e.detail = in.text();
    e.os_errno = static_cast<int>(in.get<std::uint32_t>());
    e.device = in.text();
    e.cause = in.text();
    e.remedy = in.text();
    if (e.code > Code::kProtocol) return garbled();
    out.value = std::move(e);
  }
  if (!known || !in.finished()) return garbled();
  return out;
}

}  // namespace viaduct::measure::p2p
