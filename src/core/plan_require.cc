#include <fmt/format.h>
#include <viaduct/transfer.h>

#include <array>
#include <utility>

#include "base/lists.h"
#include "base/text.h"
#include "core/plan.h"

namespace viaduct {
namespace core {
namespace {

constexpr std::string_view kBackend = "backend:";

using Demand = std::pair<std::string_view, bool Requirement::*>;
constexpr std::array kDemands{Demand{"rdma", &Requirement::rdma},
                              Demand{"same-host", &Requirement::same_host},
                              Demand{"not-tcp", &Requirement::not_tcp},
                              Demand{"no-staging", &Requirement::no_staging},
                              Demand{"gpu-direct", &Requirement::gpu_direct},
                              Demand{"packed", &Requirement::packed},
                              Demand{"encrypted", &Requirement::encrypted}};

Error bad(std::string detail) {
  return {.code = Code::kInvalid,
          .operation = "require",
          .detail = std::move(detail),
          .remedy =
              "use rdma, same-host, not-tcp, no-staging, gpu-direct, packed, encrypted or "
              "backend:NAME, "
              "several joined by commas"};
}

Status addWord(std::string_view word, Requirement& into) {
  if (const Demand* const demand = base::firstWith(kDemands, &Demand::first, word)) {
    into.*demand->second = true;
    return Ok{};
  }
  if (!word.starts_with(kBackend) || word.size() == kBackend.size())
    return bad(fmt::format("\"{}\" is not a requirement", word));
  const std::string_view name = word.substr(kBackend.size());
  if (!into.backend.empty() && into.backend != name)
    return bad(fmt::format("both backend:{} and backend:{} are required", into.backend, name));
  into.backend = name;
  return Ok{};
}

}  // namespace

Result<Requirement> parseRequirement(std::string_view text) {
  Requirement out;
  if (base::trimmed(text).empty()) return out;
  for (bool more = true; more;) {
    const auto comma = text.find(',');
    VIADUCT_CHECK(addWord(base::trimmed(text.substr(0, comma)), out));
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
