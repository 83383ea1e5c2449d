#include "meet/kubernetes/times.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/text.h"

namespace viaduct::meet::kubernetes {
namespace {

using namespace std::chrono;

// Reads texts of a fixed form: literal characters, and numbers of a fixed width.
class Fixed {
 public:
  explicit Fixed(std::string_view text) : rest_(text) {}
  int number(std::size_t digits) {
    const auto read = base::numberIn<unsigned>(take(digits));
    if (!read) good_ = false;
    return static_cast<int>(read.value_or(0));
  }
  void literal(std::string_view text) {
    if (take(text.size()) != text) good_ = false;
  }
  std::string_view take(std::size_t bytes) {
    if (bytes > rest_.size()) good_ = false;
    const std::string_view out = rest_.substr(0, bytes);
    rest_.remove_prefix(out.size());
    return out;
  }
  std::string_view rest() const { return rest_; }
  bool good() const { return good_; }

 private:
  std::string_view rest_;
  bool good_ = true;
};

std::optional<WallTime> timeOf(year_month_day day, int hour, int minute, int second) {
  if (!day.ok() || hour > 23 || minute > 59 || second > 59) return std::nullopt;
  return WallTime(sys_days(day)) + hours(hour) + minutes(minute) + seconds(second);
}

// ".123" as microseconds; digits after the sixth are cut off.
std::optional<microseconds> fractionOf(std::string_view text) {
  if (text.empty()) return microseconds(0);
  const std::string_view digits = text.substr(1);
  const bool plain = std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; });
  if (text.front() != '.' || digits.empty() || !plain) return std::nullopt;
  std::string six(digits.substr(0, 6));
  six.resize(6, '0');
  return microseconds(base::numberIn<std::int64_t>(six).value_or(0));
}

}  // namespace

std::string microTime(WallTime when) {
  const auto day = floor<days>(when);
  const year_month_day date(day);
  const hh_mm_ss time(when - day);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     time.hours().count(), time.minutes().count(), time.seconds().count(),
                     time.subseconds().count());
}

std::optional<WallTime> parseMicroTime(std::string_view text) {
  Fixed from(text);
  const year y(from.number(4));
  from.literal("-");
  const month m(static_cast<unsigned>(from.number(2)));
  from.literal("-");
  const day d(static_cast<unsigned>(from.number(2)));
  from.literal("T");
  const int hour = from.number(2);
  from.literal(":");
  const int minute = from.number(2);
  from.literal(":");
  const int second = from.number(2);
  if (!from.good() || !from.rest().ends_with('Z')) return std::nullopt;
  const auto fraction = fractionOf(from.rest().substr(0, from.rest().size() - 1));
  const auto whole = timeOf(y / m / d, hour, minute, second);
  if (!fraction || !whole) return std::nullopt;
  return *whole + *fraction;
}

std::optional<WallTime> parseHttpDate(std::string_view text) {
  constexpr std::array<std::string_view, 12> kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  Fixed from(text);
  from.take(3);  // the day of the week
  from.literal(", ");
  const day d(static_cast<unsigned>(from.number(2)));
  from.literal(" ");
  const auto named = std::ranges::find(kMonths, from.take(3));
  from.literal(" ");
  const year y(from.number(4));
  from.literal(" ");
  const int hour = from.number(2);
  from.literal(":");
  const int minute = from.number(2);
  from.literal(":");
  const int second = from.number(2);
  from.literal(" GMT");
  if (!from.good() || !from.rest().empty() || named == kMonths.end()) return std::nullopt;
  const month m(static_cast<unsigned>(named - kMonths.begin() + 1));
  return timeOf(y / m / d, hour, minute, second);
}

}  // namespace viaduct::meet::kubernetes
