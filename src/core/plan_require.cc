#include <fmt/format.h>
#include <viaduct/transfer.h>

#include "core/plan.h"
#include "core/words.h"

namespace viaduct {
namespace core {
namespace {

constexpr std::string_view kBackend = "backend:";

Error bad(std::string detail) {
  return {.code = Code::kInvalid,
          .operation = "require",
          .detail = std::move(detail),
          .remedy = "use rdma, same-host, not-tcp, no-staging or backend:NAME, several joined by commas"};
}

Status addWord(std::string_view word, Requirement& into) {
  if (word == "rdma") {
    into.rdma = true;
  } else if (word == "same-host") {
    into.same_host = true;
  } else if (word == "not-tcp") {
    into.not_tcp = true;
  } else if (word == "no-staging") {
    into.no_staging = true;
  } else if (word.starts_with(kBackend) && word.size() > kBackend.size()) {
    const std::string_view name = word.substr(kBackend.size());
    if (!into.backend.empty() && into.backend != name)
      return bad(fmt::format("both backend:{} and backend:{} are required", into.backend, name));
    into.backend = name;
  } else {
    return bad(fmt::format("\"{}\" is not a requirement", word));
  }
  return Ok{};
}

}  // namespace

Result<Requirement> parseRequirement(std::string_view text) {
  Requirement out;
  if (trimmed(text).empty()) return out;
  for (bool more = true; more;) {
    const auto comma = text.find(',');
    VIADUCT_CHECK(addWord(trimmed(text.substr(0, comma)), out));
    more = comma != std::string_view::npos;
    if (more) text.remove_prefix(comma + 1);
  }
  return out;
}

}  // namespace core

Status checkRequire(std::string_view require) {
  VIADUCT_CHECK(core::parseRequirement(require));
  return Ok{};
}

}  // namespace viaduct
