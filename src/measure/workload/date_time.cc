#include "measure/workload/date_time.h"

#include <fmt/format.h>

#include <chrono>
#include <cstddef>

#include "base/text.h"

namespace viaduct::measure {
namespace {

using namespace std::chrono;

// Takes parts from the start of a text. After the first part that does not fit, nothing fits.
class Parts {
 public:
  explicit Parts(std::string_view text) : rest_(text) {}

  bool done() const { return fits_ && rest_.empty(); }
  unsigned number(std::size_t digits) {
    const auto value = base::numberIn<unsigned>(rest_.substr(0, digits));
    fits_ = fits_ && value && rest_.size() >= digits;
    if (fits_) rest_.remove_prefix(digits);
    return fits_ ? *value : 0;
  }
  // Takes the next character if it is one of these signs. Returns true if it was.
  bool may(std::string_view signs) {
    if (!fits_ || rest_.empty() || signs.find(rest_.front()) == std::string_view::npos)
      return false;
    rest_.remove_prefix(1);
    return true;
  }
  void must(std::string_view signs) { fits_ = may(signs) && fits_; }
  // Takes the digits of a fraction, and returns them as microseconds. Cuts off further digits.
  microseconds fraction() {
    constexpr std::size_t kMost = 9, kKept = 6;
    std::string digits(rest_.substr(0, rest_.find_first_not_of("0123456789")));
    fits_ = fits_ && !digits.empty() && digits.size() <= kMost;
    if (!fits_) return {};
    rest_.remove_prefix(digits.size());
    digits.resize(kKept, '0');
    return microseconds(base::numberIn<unsigned>(digits).value_or(0));
  }
  // Takes a time zone, and returns how far it is ahead of UTC.
  minutes zone() {
    if (rest_.empty() || may("Z")) return {};
    const bool behind = rest_.front() == '-';
    must("+-");
    const unsigned hours = number(2);
    may(":");
    const unsigned more = rest_.empty() ? 0 : number(2);
    fits_ = fits_ && hours < 24 && more < 60;
    const minutes ahead(hours * 60 + more);
    return behind ? -ahead : ahead;
  }

 private:
  std::string_view rest_;
  bool fits_ = true;
};

}  // namespace

std::optional<std::uint64_t> microsecondsIn(std::string_view text) {
  Parts parts(text);
  const year y(static_cast<int>(parts.number(4)));
  parts.must("-");
  const month m(parts.number(2));
  parts.must("-");
  const day d(parts.number(2));
  parts.must(" T");
  const unsigned hour = parts.number(2);
  parts.must(":");
  const unsigned minute = parts.number(2);
  parts.must(":");
  const unsigned second = parts.number(2);  // 60 is a leap second
  const microseconds part = parts.may(".") ? parts.fraction() : microseconds{};
  const minutes ahead = parts.zone();
  const year_month_day date(y, m, d);
  if (!parts.done() || !date.ok() || hour > 23 || minute > 59 || second > 60) return std::nullopt;
  const sys_time<microseconds> at =
      sys_days(date) + hours(hour) + minutes(minute) + seconds(second) + part - ahead;
  const auto since = at.time_since_epoch().count();
  return since < 0 ? std::nullopt : std::optional(static_cast<std::uint64_t>(since));
}

std::string dateTimeText(std::uint64_t since) {
  const sys_time<microseconds> at{microseconds(since)};
  const auto midnight = floor<days>(at);
  const year_month_day date(midnight);
  const hh_mm_ss time(at - midnight);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}.{:06}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     time.hours().count(), time.minutes().count(), time.seconds().count(),
                     time.subseconds().count());
}

}  // namespace viaduct::measure
