#include "viaduct/ranks.h"

#include <unistd.h>

#include <array>

#include "base/environment.h"
#include "base/sizes.h"

namespace viaduct::app {
namespace {

std::optional<std::uint32_t> number(const std::string& text) {
  const auto count = base::parseCount(text);
  if (!count || *count > 0xffffffffU) return std::nullopt;
  return static_cast<std::uint32_t>(*count);
}

std::optional<std::uint32_t> fromVariable(const char* name) {
  const char* text = base::variable(name);
  return text == nullptr ? std::nullopt : number(text);
}

}  // namespace

std::optional<std::uint32_t> ordinalOf(const std::string& host_name) {
  const auto dash = host_name.rfind('-');
  if (dash == std::string::npos || dash + 1 == host_name.size()) return std::nullopt;
  // The name of a Deployment's pod ends in five letters and digits, which may all be digits. So an
  // ordinal must be short and have no leading zero.
  const std::string tail = host_name.substr(dash + 1);
  if (tail.size() > 4 || (tail.size() > 1 && tail[0] == '0')) return std::nullopt;
  return number(tail);
}

std::optional<std::uint32_t> rankFromEnvironment() {
  if (const auto rank = fromVariable("JOB_COMPLETION_INDEX")) return rank;
  // Outside of a cluster, a number at the end of a host's name has no meaning.
  std::array<char, 256> name{};
  if (base::variable("KUBERNETES_SERVICE_HOST") != nullptr &&
      ::gethostname(name.data(), name.size() - 1) == 0)
    if (const auto rank = ordinalOf(name.data())) return rank;
  if (const auto rank = fromVariable("SLURM_PROCID")) return rank;
  return fromVariable("OMPI_COMM_WORLD_RANK");
}

}  // namespace viaduct::app
