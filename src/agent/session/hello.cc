#include "agent/session/hello.h"

#include <fmt/format.h>

#include "agent/session/limits.h"

namespace viaduct::agent {

void Hello::encode(base::Bytes& out) const {
  base::Writer w(std::move(out));
  w.text(name);
  w.raw(std::as_bytes(std::span(agent))).raw(std::as_bytes(std::span(process)));
  w.text(boot).text(unix_name);
  w.put(static_cast<std::uint32_t>(addresses.size()));
  for (const std::string& address : addresses) w.text(address);
  w.put(last_epoch).put(detect_ms);
  writeBlobs(w, backends);
  out = w.take();
}

Result<Hello> Hello::decode(std::span<const std::byte> payload) {
  LimitedReader in(payload);
  Hello hello;
  hello.name = in.text(kMaxNameBytes);
  hello.agent = in.raw().array<16>();
  hello.process = in.raw().array<16>();
  hello.boot = in.text(kMaxNameBytes);
  hello.unix_name = in.text(kMaxNameBytes);
  const std::uint32_t addresses = in.count(kMaxAddresses);
  for (std::uint32_t i = 0; i < addresses && in.ok(); ++i)
    hello.addresses.push_back(in.text(kMaxNameBytes));
  hello.last_epoch = in.raw().get<std::uint64_t>();
  hello.detect_ms = in.raw().get<std::uint32_t>();
  hello.backends = in.blobs();
  if (hello.last_epoch >= kMaxEpoch) in.refuse();
  if (!in.finished()) return in.error("hello");
  return hello;
}

}  // namespace viaduct::agent
