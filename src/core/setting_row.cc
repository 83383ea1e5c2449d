#include "core/setting_row.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "base/lists.h"
#include "base/text.h"
#include "base/words.h"

namespace viaduct::core {
namespace {

constexpr base::Words<Toggle, 3> kToggles{
    {{"auto", Toggle::kAuto}, {"on", Toggle::kOn}, {"off", Toggle::kOff}}};

Status outOfRange(const std::string& value, const std::string& least, const std::string& most) {
  return Error{.code = Code::kInvalid,
               .operation = "settings",
               .detail = fmt::format("{} is out of range", value),
               .remedy = fmt::format("from {} to {}", least, most)};
}

// The unit to print a time in. A time is printed in its own unit, because a time that a program has
// set may overflow nanoseconds.
template <class Time>
constexpr const char* unitOf() {
  return std::is_same_v<Time, std::chrono::milliseconds> ? "ms" : "us";
}

}  // namespace

Error expectedForm(std::string form) {
  return {.code = Code::kInvalid, .operation = "settings", .remedy = std::move(form)};
}

Status parseText(std::string_view text, std::string& into) {
  into = text;
  return Ok{};
}

Status parseFlag(std::string_view text, bool& into) {
  constexpr std::array<std::string_view, 4> kYes{"1", "yes", "true", "on"};
  constexpr std::array<std::string_view, 4> kNo{"0", "no", "false", "off"};
  into = base::contains(kYes, text);
  if (into || base::contains(kNo, text)) return Ok{};
  return expectedForm("1, yes, true, on, or 0, no, false, off");
}

Status parseToggle(std::string_view text, Toggle& into) {
  const auto* const found = base::firstWith(kToggles, &base::Word<Toggle>::word, text);
  if (found == nullptr) return expectedForm("auto, on or off");
  into = found->value;
  return Ok{};
}

Status parsePrivacy(std::string_view text, Privacy& into) {
  for (std::size_t level = 0; level < kPrivacies; ++level)
    if (text == privacyName(static_cast<Privacy>(level))) {
      into = static_cast<Privacy>(level);
      return Ok{};
    }
  return expectedForm("auto, off, frames, integrity, encrypted or required");
}

Status parseCount(std::string_view text, std::uint64_t least, std::uint64_t most,
                  std::uint32_t& into) {
  const auto count = base::parseCount(text);
  if (!count || *count < least || *count > most)
    return expectedForm(fmt::format("a whole number from {} to {}", least, most));
  into = static_cast<std::uint32_t>(*count);
  return Ok{};
}

Status checkCount(std::uint64_t value, std::uint64_t least, std::uint64_t most) {
  if (value >= least && value <= most) return Ok{};
  return outOfRange(fmt::to_string(value), fmt::to_string(least), fmt::to_string(most));
}

template <class Time>
Status parseDuration(std::string_view text, Time least, Time most, Time& into) {
  const auto time = base::parseDuration(text);
  if (!time || *time < least || *time > most || *time % Time(1) != std::chrono::nanoseconds(0))
    return expectedForm(fmt::format("a duration like 2s, 500ms or 20us, in whole {}, from {} to {}",
                                    unitOf<Time>(), base::formatDuration(least),
                                    base::formatDuration(most)));
  into = std::chrono::duration_cast<Time>(*time);
  return Ok{};
}
template Status parseDuration(std::string_view, std::chrono::milliseconds,
                              std::chrono::milliseconds, std::chrono::milliseconds&);
template Status parseDuration(std::string_view, std::chrono::microseconds,
                              std::chrono::microseconds, std::chrono::microseconds&);

template <class Time>
Status checkDuration(Time time, Time least, Time most) {
  if (time >= least && time <= most) return Ok{};
  const auto show = [](Time one) { return fmt::format("{}{}", one.count(), unitOf<Time>()); };
  return outOfRange(show(time), show(least), show(most));
}
template Status checkDuration(std::chrono::milliseconds, std::chrono::milliseconds,
                              std::chrono::milliseconds);
template Status checkDuration(std::chrono::microseconds, std::chrono::microseconds,
                              std::chrono::microseconds);

Status checkSize(std::uint64_t bytes, std::uint64_t least, std::uint64_t most) {
  if (bytes >= least && bytes <= most) return Ok{};
  return outOfRange(base::formatSize(bytes), base::formatSize(least), base::formatSize(most));
}

Status parseSize(std::string_view text, std::uint64_t least, std::uint64_t most,
                 std::uint64_t& into) {
  const auto size = base::parseSize(text);
  if (!size || *size < least || *size > most)
    return expectedForm(fmt::format("a size like 64MiB or 65536, from {} to {}",
                                    base::formatSize(least), base::formatSize(most)));
  into = *size;
  return Ok{};
}

Status parsePorts(std::string_view text, PortRange& into) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint16_t>::max();
  into = {};
  if (text.empty()) return Ok{};
  const auto dash = text.find('-');
  const auto first = base::parseCount(text.substr(0, dash));
  const auto last =
      dash == std::string_view::npos ? first : base::parseCount(text.substr(dash + 1));
  if (!first || !last || *first == 0 || *first > *last || *last > kMost)
    return expectedForm("a port like 7100, or a range like 7100-7199, within 1 to 65535");
  into = {static_cast<std::uint16_t>(*first), static_cast<std::uint16_t>(*last)};
  return Ok{};
}

Status parseList(std::string_view text, const char* form, std::vector<std::string>& into) {
  std::vector<std::string> words;
  for (bool more = !base::trimmed(text).empty(); more;) {
    const auto comma = text.find(',');
    words.emplace_back(base::trimmed(text.substr(0, comma)));
    if (words.back().empty()) return expectedForm(form);
    more = comma != std::string_view::npos;
    if (more) text.remove_prefix(comma + 1);
  }
  into = std::move(words);
  return Ok{};
}

Status parseWords(std::string_view text, std::vector<std::string>& into) {
  return parseList(text, "names joined by commas", into);
}

std::string showToggle(Toggle value) { return base::wordOf(kToggles, value); }

std::string showPorts(const PortRange& value) {
  return value.first == 0 ? "" : fmt::format("{}-{}", value.first, value.last);
}

}  // namespace viaduct::core
