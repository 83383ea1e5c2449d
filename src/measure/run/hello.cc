#include "measure/run/hello.h"

#include <fmt/format.h>

#include "base/bytes.h"

namespace viaduct::measure {
namespace {

constexpr std::uint32_t kMostItems = 1U << 16U;
// Of all messages between members. Raise it when one of them changes.
constexpr std::uint32_t kVersion = 2;

std::uint32_t countOf(base::Reader& from) {
  const auto count = from.get<std::uint32_t>();
  return count <= kMostItems ? count : 0;
}

void write(base::Writer& to, const host::Interface& one) {
  to.text(one.name).put(static_cast<std::uint8_t>(one.up ? 1 : 0)).put(one.mbit_per_s);
  to.put(static_cast<std::uint32_t>(one.addresses.size()));
  for (const std::string& address : one.addresses) to.text(address);
}

host::Interface readInterface(base::Reader& from) {
  host::Interface one;
  one.name = from.text();
  one.up = from.get<std::uint8_t>() != 0;
  one.mbit_per_s = from.get<std::uint64_t>();
  for (auto left = countOf(from); left > 0 && from.ok(); --left)
    one.addresses.push_back(from.text());
  return one;
}

const std::string* find(const std::vector<Option>& options, const std::string& name) {
  for (const Option& option : options)
    if (option.name == name) return &option.value;
  return nullptr;
}

}  // namespace

std::string encode(const MemberHello& hello) {
  base::Writer to;
  to.text(encode(hello.failure)).put(static_cast<std::uint32_t>(hello.options.size()));
  for (const Option& option : hello.options) to.text(option.name).text(option.value);
  const host::Facts& f = hello.host;
  to.text(f.boot_id).text(f.hostname).text(f.kernel).text(f.cpu_model);
  to.put(f.cores).put(f.memory).put(static_cast<std::uint32_t>(f.interfaces.size()));
  for (const host::Interface& one : f.interfaces) write(to, one);
  to.put(kVersion);  // last, so that a version without this number refuses it by its length
  const base::Bytes bytes = to.take();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Result<MemberHello> decodeHello(std::string_view text) {
  base::Reader from(std::as_bytes(std::span(text)));
  MemberHello hello;
  auto failure = decodeFailure(from.text());
  if (failure) hello.failure = *std::move(failure);
  for (auto left = countOf(from); left > 0 && from.ok(); --left) {
    Option option{.name = from.text()};
    option.value = from.text();
    hello.options.push_back(std::move(option));
  }
  host::Facts& f = hello.host;
  f.boot_id = from.text();
  f.hostname = from.text();
  f.kernel = from.text();
  f.cpu_model = from.text();
  f.cores = from.get<std::uint32_t>();
  f.memory = from.get<std::uint64_t>();
  for (auto left = countOf(from); left > 0 && from.ok(); --left)
    f.interfaces.push_back(readInterface(from));
  const bool same = from.get<std::uint32_t>() == kVersion;
  if (!failure || !same || !from.finished())
    return Error{.code = Code::kProtocol,
                 .operation = "bench",
                 .detail = "a member has another version, or sent a malformed message",
                 .remedy = "run the same version of viaduct on all hosts"};
  return hello;
}

Status sameOptions(const std::vector<MemberHello>& by_rank) {
  for (std::size_t rank = 1; rank < by_rank.size(); ++rank)
    for (const Option& option : by_rank[0].options) {
      const std::string* theirs = find(by_rank[rank].options, option.name);
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
