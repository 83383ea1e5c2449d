// Any bytes as a TCPStore's answers, or as heads of names: no crash, an answer lies within its
// bytes, and an accepted head encodes to as many bytes, which hold the same head.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "fuzz/samples.h"
#include "meet/tcpstore/head.h"
#include "meet/tcpstore/protocol.h"

namespace {

using namespace viaduct::meet;
using namespace viaduct::meet::tcpstore;

constexpr std::array kForms{Form::kNone, Form::kBytes, Form::kNumber, Form::kByte};

void head(const std::string& bytes) {
  const auto decoded = decodeRecord<Head>(bytes);
  if (!decoded) return;
  const std::string encoded = encodeRecord(*decoded);
  if (encoded.size() != bytes.size()) std::abort();
  // Reading takes any byte but 0 for a true flag, so the bytes themselves may differ there.
  for (std::size_t at = 0; at < bytes.size(); ++at)
    if (encoded[at] != bytes[at] && (encoded[at] != 1 || bytes[at] == 0)) std::abort();
  const auto again = decodeRecord<Head>(encoded);
  if (!again || encodeRecord(*again) != encoded) std::abort();
}

viaduct::fuzz::Sample sample(char kind, const std::string& bytes) {
  const std::string all = kind + bytes;
  return {all.begin(), all.end()};
}

}  // namespace

namespace viaduct::fuzz {
std::vector<Sample> samples() {
  const std::string eight("\3\0\0\0\0\0\0\0", 8);
  return {
      sample(1, eight + "abc"),
      sample(2, eight),
      sample(3, std::string(1, '\0')),
      sample(4, encodeRecord(Head{.generation = 2,
                                  .owner = "0123456789abcdef",
                                  .present = true,
                                  .entry = {.identity = "boot|1 2", .value = "card"}})),
  };
}
}  // namespace viaduct::fuzz

// The first byte selects the form of the answer; 4 stands for a head.
// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer calls it so
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  const std::size_t kind = data[0] % (kForms.size() + 1);
  if (kind == kForms.size()) {
    head(bytes);
    return 0;
  }
  const auto answer = parseAnswer(kForms[kind], bytes);
  if (answer && *answer && (*answer)->size > bytes.size()) std::abort();
  return 0;
}
