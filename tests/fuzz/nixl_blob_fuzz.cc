// Any bytes as metadata and as a list of descriptors of NIXL's calls: no crash, and a decoded value
// can be encoded and decoded again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <variant>

#include "fuzz/samples.h"
#include "nixl/lists.h"
#include "nixl/metadata.h"
#include "nixl/status.h"

namespace {

using namespace viaduct::nixl;

RegistrationList registrations() {
  RegistrationList list;
  list.memory = Memory::kFile;
  list.ownRows().add(viaduct::Extent{4096, 64}, 3);
  list.ownRows().add(viaduct::Extent{8192, 32}, 4);
  list.texts = {"rw:/data", ""};
  return list;
}

}  // namespace

namespace viaduct::fuzz {
std::vector<Sample> samples() {
  std::vector<Sample> out;
  TransferList runs;
  runs.ownRows().add(viaduct::Run{4096, 128, 64, 1000}, 0);
  const Metadata metadata{.name = "worker", .regions = {{{Memory::kVram, 1, 4096, 64}, 7}}};
  for (const std::string& text : {encodeList(runs), encodeList(registrations()), metadata.encode()})
    out.emplace_back(text.begin(), text.end());
  return out;
}
}  // namespace viaduct::fuzz

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer calls it so
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  static_cast<void>(Metadata::nameOf(bytes));
  if (const auto metadata = Metadata::decode(bytes);
      metadata && !Metadata::decode(metadata->encode()))
    std::abort();
  try {
    const auto list = decodeList(bytes);
    if (std::visit([](const auto& one) { return encodeList(one); }, list) != bytes) std::abort();
  } catch (const Failure&) {  // the usual answer
  }
  return 0;
}
