#include "meet/stored_place.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "meet/identity.h"

namespace viaduct::meet {
namespace {

Error takenName(const std::string& operation, bool ours, const std::string& owner) {
  return {.code = Code::kBusy,
          .operation = operation,
          .detail = fmt::format("the name belongs to {}{}",
                                ours ? "this process" : "another process", owner),
          .remedy = "use another name, or another namespace"};
}

}  // namespace

Clock::time_point clamped(Deadline until) {
  return std::min(until.at(), Clock::now() + std::chrono::hours(24 * 365));
}

Error foreignData(const std::string& operation, const std::string& key) {
  return {.code = Code::kProtocol,
          .operation = operation,
          .detail = fmt::format("the key {} holds foreign data", key),
          .cause = "another version of this program, or another program, wrote it",
          .remedy = "use another namespace, or another name"};
}

Result<std::unique_ptr<PublishedName>> StoredPlace::publish(const std::string& name,
                                                            const std::string& value,
                                                            Deadline until) {
  const std::string operation = fmt::format("publish \"{}\"", name);
  VIADUCT_CHECK(checkEntry(operation, name, value));
  const auto end = clamped(until);
  base::Waiting aloud(say_waiting_, end);
  Wait wait{.until = end,
            .operation = operation,
            .missing = text_ + " has not said that the name is free",
            .aloud = &aloud};
  const Claim wanted{.key = std::string(kNames) + escaped(name), .value = value};
  VIADUCT_TRY(auto entry, claim(wanted, wait));
  // A living process keeps its name. A dead one's name is free after this time, so waiting longer
  // is useless.
  wait.until = std::min(end, Clock::now() + free_after_);
  bool ours = false;
  std::string owner;  // for people
  while (!entry) {
    const auto held = awaitEntry(
        wanted.key,
        [&](const std::optional<Entry>& there) {
          owner = there && !there->owner.empty() ? ", " + there->owner : "";
          ours = there && !ownIdentity().empty() && there->identity == ownIdentity();
          return !there || ours || taken_ == Taken::kLives;
        },
        wait);
    const bool still_taken =
        !held && held.error().code == Code::kTimeout && held.error().operation == wait.operation;
    if (!held && !still_taken) return held.error();
    if (!held || *held) return takenName(operation, ours, owner);
    VIADUCT_TRY(entry, claim(wanted, wait));
  }
  return entry;
}

Result<std::string> StoredPlace::find(const std::string& name, Deadline until,
                                      const StopFlag& stop) {
  const std::string operation = fmt::format("find \"{}\"", name);
  VIADUCT_CHECK(checkEntry(operation, name));
  const auto end = clamped(until);
  base::Waiting aloud(say_waiting_, end);
  const Wait wait{.until = end,
                  .stop = &stop,
                  .operation = operation,
                  .missing = "no agent has published that name at " + text_,
                  .aloud = &aloud};
  std::string value;
  const auto published = [&value](const Held& there) {
    if (there) value = *there;
    return there.has_value();
  };
  VIADUCT_CHECK(await(std::string(kNames) + escaped(name), published, wait));
  return value;
}

Result<StoredPlace::Held> StoredPlace::await(const std::string& key, const Enough& enough,
                                             const Wait& wait) {
  const auto value_of = [](const std::optional<Entry>& entry) {
    return entry ? Held(entry->value) : Held();
  };
  VIADUCT_TRY(
      const auto entry,
      awaitEntry(
          key, [&](const std::optional<Entry>& there) { return enough(value_of(there)); }, wait));
  return value_of(entry);
}

}  // namespace viaduct::meet
