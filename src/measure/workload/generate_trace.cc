#include "measure/workload/generate_trace.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/random.h"

namespace viaduct::measure {
namespace {

// Published figures of a trace. Input lengths below and above the median follow two log-normal
// distributions with different deviations.
struct Published {
  double median, below, above;  // input tokens; deviations of their logarithm
  double most;                  // tokens
  double output_mean;
  double prefix_hits;
  double requests_per_s;
  double step_ms;  // timestamps are multiples of this step
};
constexpr Published kConversation{6909, 1.07, 1.07, 126'195, 343, 0.366, 3.40, 3000};
constexpr Published kSynthetic{11'587, 2.0, 0.9, 191'378, 149, 0.640, 3.91, 1};
constexpr std::size_t kRecent = 256;   // conversations that a request may continue
constexpr std::size_t kLookedAt = 24;  // a request continues the best of this many of them
constexpr double kGain = 50;           // how strongly the part of hits is driven to its target

// Returns a random number above 0 and at most 1, so that its logarithm is finite.
double unit(base::Random& random) {
  return (static_cast<double>(random.next() >> 11U) + 1) * 0x1.0p-53;
}
double normal(base::Random& random) {
  const double radius = std::sqrt(-2 * std::log(unit(random)));
  return radius * std::cos(2 * std::numbers::pi * unit(random));
}

class Generator {
 public:
  explicit Generator(const TraceRecipe& recipe)
      : recipe_(recipe),
        like_(recipe.shape == TraceShape::kConversation ? kConversation : kSynthetic),
        random_(recipe.seed) {}

  TraceRequest next() {
    time_ms_ += -std::log(unit(random_)) * 1000 / like_.requests_per_s;
    const double step = std::floor(time_ms_ / like_.step_ms) * like_.step_ms;
    TraceRequest out{.time_us = static_cast<std::uint64_t>(step) * 1000};
    out.input_length = lengthOf(inputTokens());
    out.output_length = lengthOf(-std::log(unit(random_)) * like_.output_mean);
    addBlocks(out);
    return out;
  }

 private:
  double inputTokens() {
    const double z = normal(random_);
    return std::min(like_.most, like_.median * std::exp(z * (z < 0 ? like_.below : like_.above)));
  }
  std::uint32_t lengthOf(double tokens) const {
    return static_cast<std::uint32_t>(std::max(1.0, std::round(tokens / recipe_.divide)));
  }

  // Adds hash ids. The fewer hits there were so far, the more likely the request continues an
  // earlier conversation. The last block is never shared, because it may have fewer tokens.
  void addBlocks(TraceRequest& out) {
    const std::size_t count = (out.input_length + kHashTokens - 1) / kHashTokens;
    const double hits = refs_ == 0 ? 0 : static_cast<double>(hits_) / static_cast<double>(refs_);
    const bool goes_on =
        !recent_.empty() && random_.chance(0.5 + kGain * (like_.prefix_hits - hits));
    const std::size_t place = goes_on ? longEnough(count) : random_.below(recent_.size());
    if (goes_on) {
      const auto& before = recent_[place];
      const std::size_t most = std::min(before.size(), count) - 1;
      out.hash_ids.assign(before.begin(), before.begin() + static_cast<std::ptrdiff_t>(most));
    }
    refs_ += count;
    hits_ += out.hash_ids.size();
    while (out.hash_ids.size() < count) out.hash_ids.push_back(next_id_++);
    if (recent_.size() < kRecent && !goes_on)
      recent_.push_back(out.hash_ids);
    else if (!goes_on || recent_[place].size() < count)  // a longer one is kept
      recent_[place] = out.hash_ids;
  }

  // Returns, among a few random conversations, one with at least `count` blocks, or the longest.
  std::size_t longEnough(std::size_t count) {
    std::size_t best = random_.below(recent_.size());
    for (std::size_t i = 1; i < kLookedAt && recent_[best].size() < count; ++i)
      if (const std::size_t other = random_.below(recent_.size());
          recent_[other].size() > recent_[best].size())
        best = other;
    return best;
  }

  const TraceRecipe& recipe_;
  const Published& like_;
  base::Random random_;
  double time_ms_ = 0;
  std::uint64_t next_id_ = 0, refs_ = 0, hits_ = 0;
  std::vector<std::vector<std::uint64_t>> recent_;
};

}  // namespace

Trace generateTrace(const TraceRecipe& recipe) {
  Generator generator(recipe);
  Trace out;
  for (std::uint32_t i = 0; i < recipe.requests; ++i) out.requests.push_back(generator.next());
  return out;
}

}  // namespace viaduct::measure
