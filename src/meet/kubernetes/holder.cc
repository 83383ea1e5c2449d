#include "meet/kubernetes/holder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <set>

#include "base/guarded.h"
#include "base/printable.h"
#include "base/random.h"

namespace viaduct::meet::kubernetes {
namespace {

using Holders = std::set<std::string>;

base::Guarded<Holders>& holders() {
  static auto& all =
      *new base::Guarded<Holders>();  // also for destructors at the end of the process
  return all;
}

// This process: its host, its id and a random number.
const std::string& ownProcess() {
  static const std::string own = [] {
    const auto number = base::secretNumber();
    std::array<char, 256> host{};
    ::gethostname(host.data(), host.size() - 1);
    return fmt::format("{}_{}_{:016x}", base::printable(host.data()), ::getpid(),
                       number ? *number : 0);
  }();
  return own;
}

std::string newHolder() {
  static std::atomic<std::uint64_t> count = 0;
  return fmt::format("{}_{}", ownProcess(), ++count);
}

}  // namespace

Holder::Holder() : text_(newHolder()) {
  holders().with([this](Holders& all) { all.insert(text_); });
}

Holder::~Holder() {
  holders().with([this](Holders& all) { all.erase(text_); });
}

bool isOwnHolder(const std::string& text) { return text.starts_with(ownProcess() + '_'); }

bool isGivenUp(const std::string& text) {
  return isOwnHolder(text) && !holders().with([&](Holders& all) { return all.contains(text); });
}

}  // namespace viaduct::meet::kubernetes
