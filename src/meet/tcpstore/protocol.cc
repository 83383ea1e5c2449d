#include "meet/tcpstore/protocol.h"

#include <fmt/format.h>

#include <array>

#include "base/bytes.h"

namespace viaduct::meet::tcpstore {
namespace {

constexpr std::uint32_t kGreeting = 0x3C85F7CEU;
constexpr std::uint8_t kValidate = 0;
// The greatest number in an answer, because no store has more keys. Text of another protocol gives
// a greater number.
constexpr std::uint64_t kMaxNumber = std::uint64_t{1} << 40U;

// The number of a query in each dialect.
struct Numbers {
  std::uint8_t first, second;
};
constexpr std::array<Numbers, 5> kNumbers{{
    {0, 1},  // kSet
    {1, 2},  // kCompareSet
    {5, 6},  // kWait
    {6, 7},  // kCountKeys
    {8, 8},  // kDelete
}};

base::Writer begin(Dialect dialect, Query query) {
  const Numbers& numbers = kNumbers[static_cast<std::size_t>(query)];
  base::Writer out;
  out.put(dialect == Dialect::kFirst ? numbers.first : numbers.second);
  return out;
}

void text(base::Writer& out, std::string_view bytes) {
  out.put(std::uint64_t{bytes.size()}).raw(base::bytesOf(bytes));
}

std::string taken(base::Writer& out) { return std::string(base::textOf(out.bytes())); }

Error foreign(std::string detail) {
  return {.code = Code::kProtocol,
          .operation = "TCPStore",
          .detail = std::move(detail),
          .cause = "another program listens there, or a TCPStore of an unknown version",
          .remedy =
              "give the host and port of torch.distributed's master (MASTER_ADDR and the "
              "store's port)"};
}

}  // namespace

const char* dialectName(Dialect dialect) {
  return dialect == Dialect::kFirst ? "torch 1.x" : "torch 2.x";
}

Form answerForm(Query query) {
  switch (query) {
    case Query::kSet:
      return Form::kNone;
    case Query::kCompareSet:
      return Form::kBytes;
    case Query::kWait:
      return Form::kByte;
    case Query::kCountKeys:
    case Query::kDelete:
      return Form::kNumber;
  }
  return Form::kNone;
}

std::string greeting() {
  base::Writer out;
  out.put(kValidate).put(kGreeting);
  return taken(out);
}

// To the first dialect, the greeting's first byte is SET, and the next eight bytes are the length
// of a key. With fewer bytes it would wait for the rest.
std::string probe() {
  std::string out = greeting();
  for (int i = 0; i < kProbeQueries; ++i) out += countKeysQuery(Dialect::kSecond);
  return out;
}

std::string setQuery(Dialect dialect, std::string_view key, std::string_view value) {
  base::Writer out = begin(dialect, Query::kSet);
  text(out, key);
  text(out, value);
  return taken(out);
}

std::string compareSetQuery(Dialect dialect, std::string_view key, std::string_view expected,
                            std::string_view desired) {
  base::Writer out = begin(dialect, Query::kCompareSet);
  text(out, key);
  text(out, expected);
  text(out, desired);
  return taken(out);
}

std::string waitQuery(Dialect dialect, std::string_view key) {
  base::Writer out = begin(dialect, Query::kWait);
  out.put(std::uint64_t{1});
  text(out, key);
  return taken(out);
}

std::string deleteQuery(Dialect dialect, std::string_view key) {
  base::Writer out = begin(dialect, Query::kDelete);
  text(out, key);
  return taken(out);
}

std::string countKeysQuery(Dialect dialect) {
  base::Writer out = begin(dialect, Query::kCountKeys);
  return taken(out);
}

Result<std::optional<Answer>> parseAnswer(Form form, std::string_view in) {
  base::Reader reader(base::bytesOf(in));
  Answer out;
  switch (form) {
    case Form::kNone:
      break;
    case Form::kByte:
      out.number = reader.get<std::uint8_t>();
      if (out.number > 1) return foreign(fmt::format("it answered {}, not 0 or 1", out.number));
      break;
    case Form::kNumber:
      out.number = reader.get<std::uint64_t>();
      if (out.number > kMaxNumber)
        return foreign(fmt::format("it answered the impossible number {:#x}", out.number));
      break;
    case Form::kBytes: {
      const auto size = reader.get<std::uint64_t>();
      if (size > kMaxAnswer)
        return foreign(fmt::format("it announced an answer of {} bytes; a value has {} at most",
                                   size, kMaxAnswer));
      out.bytes = std::string(base::textOf(reader.raw(size)));
      break;
    }
  }
  if (!reader.ok()) return std::optional<Answer>();
  out.size = in.size() - reader.left();
  return std::optional(std::move(out));
}

}  // namespace viaduct::meet::tcpstore
