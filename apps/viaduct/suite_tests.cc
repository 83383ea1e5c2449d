#include "viaduct/suite_tests.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <viaduct/backend.h>
#include <viaduct/settings.h>

#include <algorithm>
#include <array>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "base/sizes.h"
#include "base/text.h"
#include "viaduct/bench_values.h"
#include "viaduct/flags.h"
#include "viaduct/help_text.h"

namespace viaduct::app {
namespace {

using measure::Option;
using measure::SuiteTest;

using base::kKiB;
using base::kMiB;

// One optimisation: the setting that turns it on and off, and the sizes at which an effect is
// expected.
struct Optimisation {
  std::string_view name, about;
  std::string_view variable, on, off;
  std::span<const std::uint64_t> sizes;
  std::string_view expected;    // the effect that people expect; answers do not use it
  std::size_t rails = 1;        // fewest rails that it needs
  std::string_view shows = {};  // as in SuiteTest
};

constexpr std::array<std::uint64_t, 5> kInjectSizes{64, 128, 256, 512, kKiB};
constexpr std::array<std::uint64_t, 8> kDoorbellSizes{
    128 * kKiB, 256 * kKiB, 512 * kKiB, kMiB, 2 * kMiB, 4 * kMiB, 8 * kMiB, 16 * kMiB};
constexpr std::array<std::uint64_t, 7> kCoalescingSizes{16 * kKiB, 32 * kKiB, 48 * kKiB, 64 * kKiB,
                                                        80 * kKiB, 96 * kKiB, 128 * kKiB};

constexpr std::array kOptimisations{
    Optimisation{.name = "inject",
                 .about = "copy small writes into the work request",
                 .variable = "VIADUCT_INJECT",
                 .on = "on",
                 .off = "off",
                 .sizes = kInjectSizes,
                 .expected = "10 to 20 % lower latency below 256 B"},
    Optimisation{.name = "doorbell",
                 .about = "one doorbell for several work requests",
                 .variable = "VIADUCT_DOORBELL",
                 .on = "on",
                 .off = "off",
                 .sizes = kDoorbellSizes,
                 .expected = "up to twice the rate over 4 rails"},
    Optimisation{.name = "coalescing",
                 .about = "use fewer rails, so that each carries 16 KiB or more",
                 .variable = "VIADUCT_STRIPING",
                 .on = "auto",
                 .off = "on",
                 .sizes = kCoalescingSizes,
                 .expected = "faster if a rail would carry less than 16 KiB",
                 .rails = 2,
                 .shows = "rails"},
};
constexpr std::string_view kBaseline = "baseline", kCombined = "combined";

bool isSetting(std::string_view variable) {
  const auto rows = settingRows();
  return std::any_of(rows.begin(), rows.end(),
                     [&](const SettingRow& row) { return row.variable == variable; });
}

bool isSettingOf(const BackendFacts& backend, std::string_view variable) {
  return std::any_of(backend.settings.begin(), backend.settings.end(),
                     [&](const SettingRow& row) { return row.variable == variable; });
}

// Returns the backends that a setting affects: its own backend, or all backends over a network for
// a setting of the agent.
std::vector<std::string_view> backendsWith(std::string_view variable) {
  const auto all = backendFacts();
  const bool own = std::any_of(all.begin(), all.end(), [&](const BackendFacts& backend) {
    return isSettingOf(backend, variable);
  });
  std::vector<std::string_view> out;
  for (const BackendFacts& backend : all)
    if (!backend.storage &&
        (own ? isSettingOf(backend, variable) : backend.realm("") != Realm::kMemory))
      out.push_back(backend.name);
  return out;
}

// Returns why the optimisation cannot be measured, or an empty text.
std::string whyNot(const Optimisation& one, const SuiteOptions& options) {
  const std::vector<std::string_view> backends = backendsWith(one.variable);
  if (std::none_of(backends.begin(), backends.end(), [&](std::string_view name) {
        return base::sameWord(name, options.backends.front());
      }))
    return fmt::format("not built into the backend {}: {} {} it", options.backends.front(),
                       fmt::join(backends, ", "), backends.size() == 1 ? "has" : "have");
  if (!isSetting(one.variable)) return fmt::format("this version has no setting {}", one.variable);
  // Without --rails, only one rail is certain.
  if (std::max<std::size_t>(options.device_list.size(), 1) < one.rails)
    return fmt::format(
        "the test needs {} rails or more, and --rails names {}", one.rails,
        options.device_list.empty() ? "none" : fmt::to_string(options.device_list.size()));
  return {};
}

std::vector<std::string> knownNames(const SuiteOptions& options) {
  std::vector<std::string> out{std::string(kBaseline)};
  for (const Optimisation& one : kOptimisations) out.emplace_back(one.name);
  for (const AddedTest& test : options.also) out.push_back(test.name);
  out.emplace_back(kCombined);
  return out;
}

Status checkNames(const SuiteOptions& options) {
  const std::vector<std::string> known = knownNames(options);
  std::set<std::string> seen;
  for (const std::string& name : known)
    if (!seen.insert(name).second)
      return badFlag("--also", fmt::format("there is a test \"{}\" already", name),
                     "give it another name");
  seen.clear();
  for (const std::string& name : options.tests) {
    if (std::find(known.begin(), known.end(), name) == known.end())
      return badFlag("--tests", fmt::format("there is no test \"{}\"", name),
                     fmt::format("name some of {}", fmt::join(known, ", ")));
    if (!seen.insert(name).second)
      return badFlag("--tests", fmt::format("{} is named twice", name), "name it once");
  }
  return Ok{};
}

class Builder {
 public:
  explicit Builder(const SuiteOptions& options) : options_(options) {
    for (const Optimisation& one : kOptimisations)
      if (whyNot(one, options).empty()) known_.push_back(&one);
  }

  std::vector<SuiteTest> build() {
    tests_.push_back({.name = std::string(kBaseline), .settings = all(nullptr)});
    for (const Optimisation& one : kOptimisations)
      if (wanted(one.name)) add(one);
    for (const AddedTest& test : options_.also) add(test);  // an added test is always measured
    if (wanted(kCombined)) addCombined();
    giveSizes();
    return std::move(tests_);
  }

 private:
  bool wanted(std::string_view name) const {
    const auto& names = options_.tests;
    return names.empty() || std::find(names.begin(), names.end(), name) != names.end();
  }

  // Returns the settings that turn every optimisation off, except `on`.
  std::vector<Option> all(const Optimisation* on) const {
    std::vector<Option> out;
    out.reserve(known_.size());
    for (const Optimisation* one : known_)
      out.push_back({std::string(one->variable), std::string(one == on ? one->on : one->off)});
    return out;
  }

  void add(const Optimisation& one) {
    tests_.push_back({.name = std::string(one.name),
                      .settings = all(&one),
                      .sizes = {one.sizes.begin(), one.sizes.end()},
                      .expected = std::string(one.expected),
                      .absent = whyNot(one, options_),
                      .shows = std::string(one.shows)});
    if (!tests_.back().absent.empty()) tests_.back().settings.clear();
  }

  void add(const AddedTest& added) {
    SuiteTest test{.name = added.name, .settings = all(nullptr)};
    for (const Option& option : added.settings) {
      std::erase_if(test.settings, [&](const Option& o) { return o.name == option.name; });
      test.settings.push_back(option);
    }
    tests_.push_back(std::move(test));
  }

  void addCombined() {
    SuiteTest test{.name = std::string(kCombined)};
    for (const Optimisation* one : known_)
      test.settings.push_back({std::string(one->variable), std::string(one->on)});
    if (known_.empty()) test.absent = "no optimisation is available to combine";
    tests_.push_back(std::move(test));
  }

  // Gives the baseline, the combined test and added tests the sizes of all tests. With --sizes,
  // every test gets those sizes instead.
  void giveSizes() {
    std::set<std::uint64_t> every(options_.sizes.begin(), options_.sizes.end());
    for (const SuiteTest& test : tests_)
      if (options_.sizes.empty()) every.insert(test.sizes.begin(), test.sizes.end());
    if (every.empty())
      for (const Optimisation& one : kOptimisations)
        every.insert(one.sizes.begin(), one.sizes.end());
    for (SuiteTest& test : tests_)
      if (test.sizes.empty() || !options_.sizes.empty()) test.sizes = {every.begin(), every.end()};
  }

  const SuiteOptions& options_;
  std::vector<const Optimisation*> known_;  // optimisations that can be measured
  std::vector<SuiteTest> tests_;
};

}  // namespace

Result<std::vector<SuiteTest>> testsOf(const SuiteOptions& options) {
  VIADUCT_CHECK(checkNames(options));
  return Builder(options).build();
}

std::optional<std::string> nothingToCompare(const std::vector<SuiteTest>& tests) {
  std::string reasons;
  for (const SuiteTest& test : tests) {
    if (test.name == kBaseline || test.name == kCombined) continue;
    if (test.absent.empty()) return std::nullopt;
    reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", test.name, test.absent);
  }
  if (reasons.empty()) return std::nullopt;
  return fmt::format(
      "nothing to compare with the baseline: {}; what to do: use another --backend or more "
      "--rails, or add a test with --also 'NAME: VIADUCT_X=1'",
      reasons);
}

std::vector<PageEntry> optimisationEntries() {
  std::vector<PageEntry> out{
      {.names = {std::string(kBaseline)}, .about = "every optimisation off"}};
  for (const Optimisation& one : kOptimisations)
    out.push_back(
        {.names = {std::string(one.name)},
         .about = fmt::format("{} ({}; {}); expected: {}", one.about, one.variable,
                              fmt::join(backendsWith(one.variable), ", "), one.expected)});
  out.push_back({.names = {std::string(kCombined)}, .about = "every optimisation on"});
  return out;
}

}  // namespace viaduct::app
