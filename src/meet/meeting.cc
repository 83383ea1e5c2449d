#include "meet/meeting.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/printable.h"

namespace viaduct::meet {
namespace {

using std::chrono::milliseconds;

// The interval of await()'s reads. API servers limit the requests of a client to a few a second.
constexpr milliseconds kReadEvery{1000};

}  // namespace

Result<std::unique_ptr<PublishedName>> MeetingPlace::claim(const Claim& claim, const Wait& wait) {
  auto entry = publish(claim.key, claim.value, Deadline(wait.until));
  if (!entry && entry.error().code == Code::kBusy) return std::unique_ptr<PublishedName>();
  return entry;
}

Result<MeetingPlace::Held> MeetingPlace::await(const std::string& key, const Enough& enough,
                                               const Wait& wait) {
  const StopFlag never{false};
  for (;;) {
    const auto next = std::min(wait.until, Clock::now() + kReadEvery);
    auto found = find(key, Deadline(next), wait.stop != nullptr ? *wait.stop : never);
    if (!found && found.error().code != Code::kTimeout) return std::move(found).error();
    Held held;
    if (found) held = *std::move(found);
    if (enough(held)) return held;
    if (!sleepUntil(next, [&] { return !wait.stopped(); })) return wait.cancelled();
    if (Clock::now() >= wait.until) return wait.timedOut();
  }
}

Status checkEntry(const std::string& operation, const std::string& name, const std::string& value) {
  Error wrong{.operation = operation};
  if (name.empty() || name.size() > kMaxNameBytes)
    wrong.detail = fmt::format("a name has 1 to {} bytes", kMaxNameBytes);
  else if (!base::isPrintable(name))
    wrong.detail = "the name has a control character, or bytes that are not UTF-8";
  else if (value.size() > kMaxValueBytes)
    wrong.detail = fmt::format("a value has up to {} bytes, not {}", kMaxValueBytes, value.size());
  else
    return Ok{};
  return wrong;
}

}  // namespace viaduct::meet
