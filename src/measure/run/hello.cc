#include "measure/run/hello.h"

#include <fmt/format.h>

#include "base/fields.h"

// base::Fields finds the fields() functions below by argument-dependent lookup, so these stay
// outside of the unnamed namespaces.
namespace viaduct::host {

auto fields(base::Is<Interface> auto& i) {
  return std::tie(i.name, i.up, i.mbit_per_s, i.addresses);
}
auto fields(base::Is<Facts> auto& f) {
  return std::tie(f.boot_id, f.kernel_started, f.hostname, f.kernel, f.cpu_model, f.cores, f.memory,
                  f.interfaces);
}

}  // namespace viaduct::host

namespace viaduct::measure {

auto fields(base::Is<Option> auto& o) { return std::tie(o.name, o.value); }
auto fields(base::Is<Build> auto& b) { return std::tie(b.version, b.commit); }
auto fields(base::Is<MemberHello> auto& h) {
  return std::tie(h.failure, h.options, h.host, h.build);
}

namespace {

// The version of all messages between members. Raise it when a message changes.
constexpr std::uint32_t kHelloVersion = 2;

}  // namespace

std::string encode(const MemberHello& hello) { return base::packed(hello, kHelloVersion); }

Result<MemberHello> decodeHello(std::string_view text) {
  MemberHello hello;
  std::uint32_t version = 0;
  if (base::unpack(text, hello, version) && version == kHelloVersion) return hello;
  return Error{.code = Code::kProtocol,
               .operation = "bench",
               .detail = "a member has another version, or sent a malformed message",
               .remedy = "run the same version of viaduct on all hosts"};
}

Status sameOptions(const std::vector<MemberHello>& by_rank) {
  for (std::size_t rank = 1; rank < by_rank.size(); ++rank)
    for (const Option& option : by_rank[0].options) {
      const std::string* theirs = valueOf(by_rank[rank].options, option.name);
      if (theirs != nullptr && *theirs == option.value) continue;
      return Error{.code = Code::kInvalid,
                   .operation = "bench",
                   .detail = fmt::format("rank {} was started with {}={}, and rank 0 with {}={}",
                                         rank, option.name, theirs == nullptr ? "?" : *theirs,
                                         option.name, option.value),
                   .remedy = "start all members with the same flags"};
    }
  return Ok{};
}

}  // namespace viaduct::measure
