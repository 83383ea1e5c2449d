#include "meet/wait.h"

#include "base/random.h"

namespace viaduct::meet {

Duration jittered(Duration around) {
  constexpr Duration::rep kSteps = 1024;
  const auto random = base::secretNumber();
  const auto step = static_cast<Duration::rep>((random ? *random : 0) % kSteps);
  return around / 2 + around * step / kSteps;
}

Duration BackOff::next() {
  pause_ = std::clamp(pause_ + pause_ / 2, first_, longest_);
  return jittered(pause_);
}

}  // namespace viaduct::meet
