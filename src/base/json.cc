#include "base/json.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace viaduct::base {
namespace {

// Strips the prefix of "[json.exception.parse_error.101] parse error at line 1, column 2: ...".
Error notJson(std::string_view what) {
  const auto front = what.find("] ");
  return {.code = Code::kProtocol,
          .operation = "JSON",
          .detail = std::string(front == std::string_view::npos ? what : what.substr(front + 2))};
}

}  // namespace

Result<Json> parseJson(std::string_view text) {
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& e) {
    Error error = notJson(e.what());
    // The parser failed only at the end of the text, and the text starts as JSON.
    if (e.byte >= text.size() && text.starts_with('{'))
      error.cause = "the text ends too early: it was cut off, or is still being written";
    return error;
  } catch (const Json::exception& e) {
    return notJson(e.what());
  }
}

std::string dumpJson(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

void JsonReader::wrong(const char* key, std::string detail) {
  child(json_, key).fail(std::move(detail));
}

Status JsonReader::status(const char* operation, const std::string& file) const {
  const auto& error = firstError();
  if (!error) return Ok{};
  return Error{.code = Code::kProtocol, .operation = operation, .detail = *error, .file = file};
}

const Json* JsonReader::find(const char* key, bool needed) {
  if (!ok()) return nullptr;
  const auto at = json_.find(key);
  if (at != json_.end()) return &*at;
  if (needed) wrong(key, "is missing");
  return nullptr;
}

bool JsonReader::isObject() {
  if (!json_.is_object()) mistyped("an object");
  return json_.is_object();
}

void JsonReader::value(std::string& into) {
  if (!json_.is_string()) return mistyped("text");
  into = json_.get<std::string>();
}

void JsonReader::value(bool& into) {
  if (!json_.is_boolean()) return mistyped("true or false");
  into = json_.get<bool>();
}

void JsonReader::value(double& into) {
  if (!json_.is_number()) return mistyped("a number");
  const auto found = json_.get<double>();
  if (!std::isfinite(found) || found < 0) return mistyped("a number from 0");
  into = found;
}

void JsonReader::value(std::uint64_t& into) {
  if (!json_.is_number_unsigned()) return mistyped("a whole number from 0");
  into = json_.get<std::uint64_t>();
}

void JsonReader::value(std::uint32_t& into) {
  std::uint64_t wide = 0;
  value(wide);
  if (wide > std::numeric_limits<std::uint32_t>::max()) return mistyped("a number below 2^32");
  into = static_cast<std::uint32_t>(wide);
}

void JsonReader::mistyped(const char* expected) {
  constexpr std::size_t kShown = 40;
  std::string found = json_.is_structured() ? json_.type_name() : dumpJson(json_, -1);
  if (found.size() > kShown) found.replace(kShown, std::string::npos, "...");
  fail(fmt::format("is {}, not {}", found, expected));
}

void JsonReader::fail(std::string detail) {
  JsonReader* root = this;
  while (root->parent_ != nullptr) root = root->parent_;
  if (!root->error_) root->error_ = path() + " " + std::move(detail);
}

std::string JsonReader::path() const {
  if (parent_ == nullptr) return key_ == nullptr ? "the whole" : key_;
  const std::string front = parent_->parent_ == nullptr ? "" : parent_->path();
  if (key_ == nullptr) return fmt::format("{}[{}]", front, index_);
  return front.empty() ? key_ : front + "." + key_;
}

const std::optional<std::string>& JsonReader::firstError() const {
  const JsonReader* root = this;
  while (root->parent_ != nullptr) root = root->parent_;
  return root->error_;
}

}  // namespace viaduct::base
