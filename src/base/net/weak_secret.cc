#include "base/net/weak_secret.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>

#include "base/log.h"

namespace viaduct::base {

// Assumes that each character was drawn at random from the characters that occur in the text. So it
// finds a text that is short or repeats itself, but not a long text that many people know.
bool isGuessable(std::string_view text) {
  constexpr double kEnoughBits = 80.0;
  std::array<bool, 256> occurs{};
  for (const char one : text) occurs[static_cast<unsigned char>(one)] = true;
  const auto different = std::count(occurs.begin(), occurs.end(), true);
  return different < 2 || std::log2(different) * static_cast<double>(text.size()) < kEnoughBits;
}

void warnIfGuessable(std::string_view secret) {
  static std::atomic_flag said;
  if (!secret.empty() && isGuessable(secret))
    logOnce(said, LogLevel::kWarning,
            "the secret is short enough to be guessed. An attacker who makes a member dial it can "
            "test guesses offline. Take a random one: openssl rand -hex 16");
}

}  // namespace viaduct::base
