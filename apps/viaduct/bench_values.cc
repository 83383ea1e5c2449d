#include "viaduct/bench_values.h"

#include <fmt/ranges.h>
#include <viaduct/backend.h>
#include <viaduct/settings.h>
#include <viaduct/transfer.h>

#include <algorithm>
#include <charconv>

#include "base/sizes.h"
#include "base/text.h"
#include "measure/workload/workload.h"
#include "viaduct/flags.h"

namespace viaduct::app {

using namespace std::chrono_literals;

Error wrongValue(std::string detail, std::string remedy) {
  return {.code = Code::kInvalid, .detail = std::move(detail), .remedy = std::move(remedy)};
}

std::string backendNamed(const std::string& name) {
  for (const BackendFacts& backend : backendFacts())
    for (const std::string_view alias : backend.aliases)
      if (base::sameWord(name, alias)) return std::string(backend.name);
  return name;
}

std::vector<std::string_view> offeredBackends() {
  std::vector<std::string_view> names = builtInBackends();
  std::erase_if(names, [](std::string_view name) {
    const BackendFacts& facts = *backendFacts(name);
    return facts.for_tests || facts.storage.has_value();
  });
  return names;
}

std::vector<std::string_view> storageBackends() {
  std::vector<std::string_view> names = builtInBackends();
  std::erase_if(names,
                [](std::string_view name) { return !backendFacts(name)->storage.has_value(); });
  return names;
}

bool isStorage(const std::string& name) {
  const BackendFacts* const facts = backendFacts(backendNamed(name));
  return facts != nullptr && facts->storage;
}

std::string usualOverNetwork() {
  for (const BackendFacts& backend : backendFacts())
    if (backend.usual && backend.realm("") != Realm::kMemory) return std::string(backend.name);
  return {};
}

Status intoText(std::string_view text, std::string& into) {
  into = text;
  return Ok{};
}

Status intoOneText(std::string_view text, std::vector<std::string>& into) {
  into.emplace_back(text);
  return Ok{};
}

Status intoFile(std::string_view text, std::string& into) {
  if (text.empty())
    return wrongValue("the file name is empty", "give a file name, or omit the flag");
  if (text == "-")
    return wrongValue("\"-\" is not a file name", "use --output json to print the results");
  return intoText(text, into);
}

Status intoYesNo(std::string_view text, bool& into) {
  const auto parsed = parseYesNo(text);
  if (!parsed) return wrongValue(parsed.error().detail, parsed.error().remedy);
  into = *parsed;
  return Ok{};
}

Status intoSize(std::string_view text, std::uint64_t& into) {
  auto size = base::parseSize(text);
  if (!size) return wrongValue(size.error().detail, size.error().remedy);
  if (*size == 0) return wrongValue("the size is 0", "use 1 byte or more");
  into = *size;
  return Ok{};
}

namespace {

Result<std::string> requirementOf(const std::string& word) {
  constexpr std::string_view kBackend = "backend:";
  if (!word.starts_with(kBackend) || word.size() == kBackend.size()) return word;
  const std::string wanted = backendNamed(word.substr(kBackend.size()));
  for (const std::string_view name : builtInBackends())
    if (base::sameWord(name, wanted)) return fmt::format("{}{}", kBackend, name);
  return wrongValue(fmt::format("there is no backend \"{}\"", wanted),
                    fmt::format("choose one of {}", fmt::join(offeredBackends(), ", ")));
}

}  // namespace

// Checks the requirement here, because the plan would repeat the error for every row.
Status intoRequire(std::string_view text, std::string& into) {
  if (auto can = checkRequire(measure::requireOfTransfer(text)); !can)
    return wrongValue(can.error().detail, can.error().remedy);
  if (base::trimmed(text).empty()) return Ok{};
  std::vector<std::string> words;
  VIADUCT_CHECK(intoWords(text, words));
  for (std::string& word : words) {
    VIADUCT_TRY(word, requirementOf(word));
  }
  into = fmt::format("{}", fmt::join(words, ","));
  return checkRequire(measure::requireOfTransfer(into));
}

Status intoWords(std::string_view text, std::vector<std::string>& into) {
  for (bool more = true; more;) {
    const auto comma = text.find(',');
    const auto word = base::trimmed(text.substr(0, comma));
    if (word.empty())
      return wrongValue(into.empty() && comma == std::string_view::npos ? "the list is empty"
                                                                        : "a list item is empty",
                        "join words by commas");
    into.emplace_back(word);
    more = comma != std::string_view::npos;
    if (more) text.remove_prefix(comma + 1);
  }
  return Ok{};
}

Status intoLinkRates(std::string_view text, std::vector<measure::LinkRate>& into) {
  std::vector<std::string> words;
  VIADUCT_CHECK(intoWords(text, words));
  for (const std::string& word : words) {
    VIADUCT_TRY(measure::LinkRate rate, measure::parseLinkRate(word));
    into.push_back(std::move(rate));
  }
  return Ok{};
}

Status eachInList(std::string_view text,
                  const std::function<Status(std::string_view first, std::string_view last)>& add) {
  std::vector<std::string> words;
  VIADUCT_CHECK(intoWords(text, words));
  for (const std::string& word : words) {
    const auto dots = word.find("..");
    const std::string_view first = std::string_view(word).substr(0, dots);
    VIADUCT_CHECK(add(first, dots == word.npos ? first : std::string_view(word).substr(dots + 2)));
  }
  return Ok{};
}

Status intoSizes(std::string_view text, std::vector<std::uint64_t>& into) {
  return eachInList(text, [&](std::string_view first, std::string_view last) -> Status {
    std::uint64_t from = 0, to = 0;
    VIADUCT_CHECK(intoSize(first, from));
    VIADUCT_CHECK(intoSize(last, to));
    if (from > to) return wrongValue(fmt::format("{} is above {}", first, last), {});
    std::ranges::copy(doubled(from, to), std::back_inserter(into));
    return Ok{};
  });
}

Result<std::uint64_t> countIn(std::string_view text, std::uint64_t least, std::uint64_t most) {
  const auto count = base::parseCount(text);
  if (count && *count >= least && *count <= most) return *count;
  return wrongValue(fmt::format("\"{}\" is not a whole number from {} to {}", text, least, most),
                    {});
}

Status intoTime(std::string_view text, std::chrono::nanoseconds& into) {
  const bool bare = !text.empty() && text.find_first_not_of("0123456789.") == text.npos;
  auto time = base::parseDuration(bare ? fmt::format("{}s", text) : text);
  if (!time) return wrongValue(time.error().detail, time.error().remedy);
  into = *time;
  return Ok{};
}

Status intoSomeTime(std::string_view text, std::chrono::nanoseconds& into) {
  VIADUCT_CHECK(intoTime(text, into));
  if (into.count() == 0) return wrongValue("the duration is 0", "use 1ms or more");
  return Ok{};
}

Status intoPause(std::string_view text, std::chrono::nanoseconds& into) {
  if (intoTime(text, into) && into >= 10ms && into <= 1h) return Ok{};
  return wrongValue(fmt::format("\"{}\" is not a duration from 10ms to 1h", text), {});
}

Status intoInterval(std::string_view text, std::chrono::nanoseconds& into) {
  if (intoTime(text, into) && into >= 10ms && into <= 24h) return Ok{};
  return wrongValue(fmt::format("\"{}\" is no interval", text),
                    "seconds from 0.01 to 86400, such as 1 or 0.5");
}

Status intoRate(std::string_view text, double& into) {
  const auto rate = base::numberIn<double>(text);
  if (!rate || *rate <= 0)
    return wrongValue(fmt::format("\"{}\" is not a number above 0", text),
                      "give transfers per second");
  into = *rate;
  return Ok{};
}

Status intoPercent(std::string_view text, double& into) {
  double value = -1;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  if (failure != std::errc{} || (unit != "%" && unit != " %") || !(value >= 0 && value < 100))
    return wrongValue(fmt::format("\"{}\" is not a percentage", text),
                      "write it like 5% or 0.5%, from 0% to 99%");
  into = value / 100;
  return Ok{};
}

}  // namespace viaduct::app
