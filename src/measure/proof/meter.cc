#include "measure/proof/meter.h"

#include <chrono>

namespace viaduct::measure {
namespace {

double secondsOf(Duration time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

double Meter::rateOf(const Mark& from, const Mark& to) {
  const double seconds = secondsOf(to.at - from.at);
  return seconds > 0 ? static_cast<double>(to.bytes - from.bytes) / seconds * 1e-9 : 0;
}

RateInterval Meter::between(const Mark& from, const Mark& to) {
  return {.start = secondsOf(from.at),
          .end = secondsOf(to.at),
          .gb_per_s = rateOf(from, to),
          .bytes = to.bytes - from.bytes};
}

void Meter::begin(Clock::time_point now, std::uint64_t bytes) {
  begun_ = now;
  first_bytes_ = bytes;
}

std::optional<RateInterval> Meter::look(Clock::time_point now, std::uint64_t bytes) {
  if (!begun_) return std::nullopt;
  now_ = {before_.at + (now - *begun_), before_.bytes + (bytes - first_bytes_)};
  if (now < due()) return std::nullopt;
  const RateInterval out = between(reported_, now_);
  reported_ = now_;
  return out;
}

void Meter::end() {
  before_ = now_;
  begun_.reset();
}

std::optional<RateInterval> Meter::rest() const {
  if (interval_ == Duration(0) || now_.at == reported_.at) return std::nullopt;
  return between(reported_, now_);
}

// Intervals end at multiples of their length, even after an interval that was reported late.
Clock::time_point Meter::due() const {
  if (!begun_ || interval_ == Duration(0)) return Clock::time_point::max();
  const auto next = (reported_.at / interval_ + 1) * interval_;
  return *begun_ + (next - before_.at);
}

}  // namespace viaduct::measure
