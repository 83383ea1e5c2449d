// Any messages from a peer of ucx: no crash, no belief in bytes behind an incomplete head, and an
// accepted message encodes to the same bytes.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "backends/ucx/message.h"
#include "fuzz/samples.h"

namespace viaduct::fuzz {

std::vector<Sample> samples() {
  std::vector<Sample> out;
  for (const auto kind : {ucx::Message::Kind::kWrite, ucx::Message::Kind::kRead}) {
    ucx::Message message;
    message.kind = kind;
    message.count = 2;
    message.extents[0] = {.address = 0x7000, .bytes = 3};
    message.extents[1] = {.address = 0x8000, .bytes = 5};
    std::array<std::byte, ucx::Message::kLongestHead> head{};
    const std::size_t bytes = encode(message, head);
    Sample sample = sampleOf(std::span(head).first(bytes));
    sample.insert(sample.begin(),
                  {0, kind == ucx::Message::Kind::kWrite ? std::uint8_t{8} : std::uint8_t{0}});
    out.push_back(std::move(sample));
  }
  return out;
}

}  // namespace viaduct::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using viaduct::ucx::Message;
  if (size < 2) return 0;
  const std::size_t behind = data[0] * 256U + data[1];
  const auto head = std::as_bytes(std::span(data, size)).subspan(2);
  const auto message = viaduct::ucx::decode(head, behind);
  if (!message) return 0;
  const auto list = message->list();
  const auto total = std::accumulate(
      list.begin(), list.end(), std::uint64_t{0},
      [](std::uint64_t sum, const viaduct::Extent& one) { return sum + one.bytes; });
  if (message->kind == Message::Kind::kWrite && total != behind) std::abort();
  if (message->kind == Message::Kind::kRead && total > Message::kMostBytes) std::abort();
  std::array<std::byte, Message::kLongestHead> again{};
  if (encode(*message, again) != head.size() ||
      std::memcmp(again.data(), head.data(), head.size()) != 0)
    std::abort();
  return 0;
}
