// JSON whose fields are named once for writing and reading, by a function beside their type:
//
//   void describe(auto& json, base::Is<Point> auto& p) { json.need("x", p.x); json.may("y", p.y); }
//
// A list of structs with a `name` and a `value` is an object. Threads: one at a time.
#pragma once

#include <viaduct/result.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fields.h"
#include "base/words.h"

namespace viaduct::base {

using Json = nlohmann::ordered_json;

// Parses a whole text. The error names the wrong place, or says that the text ends too early.
Result<Json> parseJson(std::string_view text);
// Prints in one line if `indent` is -1, otherwise indented. Bytes that are not UTF-8 are replaced.
std::string dumpJson(const Json& json, int indent);

template <class T>
concept NamedText = requires(T t) {
  { t.name } -> std::same_as<std::string&>;
  { t.value } -> std::same_as<std::string&>;
};

// Leaves out a number that is not finite, and an object that needs such a number.
class JsonWriter {
 public:
  // JsonReader explains need(), keep() and may().
  template <class T>
  void need(const char* key, const T& value) {
    if (!set(key, value)) whole_ = false;
  }
  template <class T>
  void keep(const char* key, const T& value) {
    set(key, value);
  }
  template <class T>
  void may(const char* key, const T& value) {
    if (!isEmpty(value)) set(key, value);
  }
  template <class T, std::size_t N>
  void word(const char* key, const T& value, const Words<T, N>& words) {
    json_[key] = wordOf(words, value);
  }
  template <NamedText T>
  void plain(const std::vector<T>& values) {
    for (const T& one : values) json_[one.name] = one.value;
  }

  Json json() { return std::move(json_); }

  template <class T>
  static Json of(const T& value) {
    return element(value);
  }

 private:
  template <class T>
  bool set(const char* key, const T& value) {
    Json json = element(value);
    if (json.is_null()) return false;
    json_[key] = std::move(json);
    return true;
  }
  template <class T>
  static bool isEmpty(const T& value) {
    if constexpr (requires { value.has_value(); })
      return !value.has_value();
    else if constexpr (requires { value.empty(); })
      return value.empty() || element(value).empty();
    else
      return value == T{};
  }
  static Json element(double value) { return std::isfinite(value) ? Json(value) : Json(); }
  template <class T>
  static Json element(const std::optional<T>& value) {
    return value ? element(*value) : Json();
  }
  template <class T>
  static Json element(const std::vector<T>& list) {
    if constexpr (NamedText<T>) {
      JsonWriter out;
      out.plain(list);
      return std::move(out.json_);
    } else {
      Json out = Json::array();
      for (const T& one : list)
        if (Json json = element(one); !json.is_null()) out.push_back(std::move(json));
      return out;
    }
  }
  template <class T>
  static Json element(const T& value) {
    if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
      return Json(value);
    } else {
      JsonWriter out;
      describe(out, value);
      return out.whole_ ? std::move(out.json_) : Json();
    }
  }

  Json json_ = Json::object();
  bool whole_ = true;  // nothing that is needed is missing
};

// Reads strictly: each error has the path of the field. After the first error no further field is
// read.
class JsonReader {
 public:
  explicit JsonReader(const Json& root) : json_(root) {}

  // Reads a field that has to be there.
  template <class T>
  void need(const char* key, T& into) {
    if (const Json* at = find(key, true)) child(*at, key).value(into);
  }
  // Reads a field that writers leave out when it is empty.
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
  // Reads a field that our own files have, and that other files may lack.
  template <class T>
  void keep(const char* key, T& into) {
    may(key, into);
  }
  template <class T, std::size_t N>
  void word(const char* key, T& into, const Words<T, N>& words) {
    std::string text;
    need(key, text);
    if (!ok()) return;
    for (const Word<T>& one : words)
      if (text == one.word) {
        into = one.value;
        return;
      }
    wrong(key, "\"" + text + "\" is none of " + listOf(words));
  }
  // The members of this object that are plain values.
  template <NamedText T>
  void plain(std::vector<T>& into) {
    for (const auto& [name, value] : json_.items())
      if (!value.is_structured())
        into.push_back(
            {name, value.is_string() ? value.template get<std::string>() : dumpJson(value, -1)});
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
  template <NamedText T>
  void value(std::vector<T>& into) {
    if (isObject()) plain(into);
  }
  template <class T>
  void value(std::vector<T>& into) {
    if (!json_.is_array()) return mistyped("a list");
    for (std::size_t i = 0; i < json_.size() && ok(); ++i) {
      T item{};
      JsonReader(json_[i], this, nullptr, i).value(item);
      into.push_back(std::move(item));
    }
  }
  // A value of any other type is an object whose type has a function `describe()`.
  template <class T>
  void value(T& into) {
    if (isObject()) describe(*this, into);
  }

  void mistyped(const char* expected);
  void fail(std::string detail);
  std::string path() const;
  const std::optional<std::string>& firstError() const;

  const Json& json_;
  JsonReader* parent_ = nullptr;
  const char* key_ = nullptr;         // the key in the parent, if the parent is an object
  std::size_t index_ = 0;             // the index in the parent, if the parent is a list
  std::optional<std::string> error_;  // the first error of the document; only the root has it
};

}  // namespace viaduct::base
