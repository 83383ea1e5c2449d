#include "meet/place.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace viaduct::meet {
namespace {

bool isDigit(char c) { return c >= '0' && c <= '9'; }
bool isHex(char c) { return isDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

// Whether the address begins with a word that can only be meant as a scheme. A host name before a
// port is no scheme. The first word of an IPv6 address, all hexadecimal digits, is no scheme
// either.
bool hasScheme(std::string_view word, std::string_view rest) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || isDigit(c) || c == '-' || c == '+';
  };
  if (word.empty() || isDigit(word.front()) || !std::ranges::all_of(word, is_letter)) return false;
  if (rest.empty() || rest.front() == ':' || isDigit(rest.front())) return false;
  return rest.starts_with("//") || !std::ranges::all_of(word, isHex);
}

Error unknown(const std::string& where, std::string_view scheme) {
  std::vector<std::string> known;
  for (const PlaceEntry& entry : placeCatalogue()) {
    if (entry.plain) known.emplace_back("HOST:PORT");
    for (const std::string_view one : entry.schemes) known.push_back(fmt::format("{}:", one));
  }
  std::ranges::sort(known);
  return {.operation = "meeting place",
          .detail = fmt::format("\"{}\": the scheme \"{}:\" is unknown", where, scheme),
          .cause = "the scheme is misspelt, or no port follows the name of a host",
          .remedy = fmt::format("the known addresses begin with {}", fmt::join(known, ", "))};
}

}  // namespace

Result<ChosenPlace> choosePlace(const std::string& where) {
  const std::size_t colon = std::min(where.find(':'), where.size());
  const std::string_view word = std::string_view(where).substr(0, colon);
  const std::string_view rest = std::string_view(where).substr(std::min(colon + 1, where.size()));
  const PlaceEntry* plain = nullptr;
  for (const PlaceEntry& entry : placeCatalogue()) {
    if (entry.plain) plain = &entry;
    if (colon < where.size() && std::ranges::find(entry.schemes, word) != entry.schemes.end())
      return ChosenPlace{&entry, rest.starts_with("//") ? where : std::string(rest)};
  }
  if (plain != nullptr && !hasScheme(word, rest)) return ChosenPlace{plain, where};
  return unknown(where, word);
}

Result<std::unique_ptr<MeetingPlace>> openMeetingPlace(const PlaceOptions& options) {
  VIADUCT_TRY(ChosenPlace chosen, choosePlace(options.where));
  PlaceOptions own = options;
  own.where = std::move(chosen.where);
  return chosen.entry->open(own);
}

}  // namespace viaduct::meet
