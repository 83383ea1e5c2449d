// Reads JSON strictly: every field by its name, each error with the path of its field. Only the
// first error counts; after it, fields keep their values. Threads: one at a time.
#pragma once

#include <viaduct/result.h>

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace viaduct::base {

using Json = nlohmann::ordered_json;

// Parses a whole text. The error names the wrong place, or says that the text ends too early.
Result<Json> parseJson(std::string_view text);
// In one line, or indented. Bytes that are not UTF-8 are replaced.
std::string dumpJson(const Json& json, int indent);

class JsonReader {
 public:
  explicit JsonReader(const Json& root) : json_(root) {}

  // Reads a field that has to be there.
  template <class T>
  void need(const char* key, T& into) {
    if (const Json* at = find(key, true)) child(*at, key).value(into);
  }
  // Reads an optional field: it was not measured, or an older version wrote the document.
  template <class T>
  void may(const char* key, T& into) {
    if (const Json* at = find(key, false)) child(*at, key).value(into);
  }
  template <class T>
  void may(const char* key, std::optional<T>& into) {
    const Json* at = find(key, false);
    if (at == nullptr) return;
    T value{};
    child(*at, key).value(value);
    if (ok()) into = std::move(value);
  }
  // Reads a word that `named` accepts. `known` lists the accepted words for the error.
  template <class T, class Named>
  void word(const char* key, T& into, Named named, const char* known) {
    std::string text;
    need(key, text);
    if (!ok()) return;
    if (const auto value = named(text))
      into = *value;
    else
      wrong(key, "\"" + text + "\" is none of " + known);
  }
  // Calls `each` with name and text of each member that is a plain value.
  template <class Each>
  void eachPlain(Each each) {
    for (const auto& [name, value] : json_.items())
      if (!value.is_structured())
        each(name, value.is_string() ? value.template get<std::string>() : dumpJson(value, -1));
  }
  void wrong(const char* key, std::string detail);

  bool ok() const { return !firstError().has_value(); }
  // Ok, or the first error: "rows[3].block_size: ..."
  Status status(const char* operation, const std::string& file) const;

 private:
  JsonReader(const Json& json, JsonReader* parent, const char* key, std::size_t index)
      : json_(json), parent_(parent), key_(key), index_(index) {}
  JsonReader child(const Json& json, const char* key) { return {json, this, key, 0}; }

  const Json* find(const char* key, bool needed);
  bool isObject();
  void value(std::string& into);
  void value(bool& into);
  void value(double& into);  // finite and not negative, as all figures are
  void value(std::uint64_t& into);
  void value(std::uint32_t& into);
  template <class T>
  void value(std::vector<T>& into) {
    if (!json_.is_array()) return mistyped("a list");
    for (std::size_t i = 0; i < json_.size() && ok(); ++i) {
      T item{};
      JsonReader(json_[i], this, nullptr, i).value(item);
      into.push_back(std::move(item));
    }
  }
  // All other types are objects with a function `read(JsonReader&, T&)`.
  template <class T>
  void value(T& into) {
    if (isObject()) read(*this, into);
  }

  void mistyped(const char* expected);
  void fail(std::string detail);
  std::string path() const;
  const std::optional<std::string>& firstError() const;

  const Json& json_;
  JsonReader* parent_ = nullptr;
  const char* key_ = nullptr;         // in the parent, if that is an object
  std::size_t index_ = 0;             // in the parent, if that is a list
  std::optional<std::string> error_;  // of the whole document; the root keeps it
};

}  // namespace viaduct::base
