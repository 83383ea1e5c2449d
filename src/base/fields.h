// Reads and writes messages as lists of fields. The function `fields(value)` beside a type ties the
// type's fields together, for both directions:
//
//   auto fields(base::Is<Point> auto& p) { return std::tie(p.x, p.y); }
//
// A type may instead have encode(Writer&) and decode(Reader&) of its own. Threads: pure functions.
#pragma once

#include <viaduct/result.h>

#include <array>
#include <bit>
#include <chrono>
#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "base/bytes.h"

namespace viaduct {
namespace base {

// True if T is U or const U.
template <class T, class U>
concept Is = std::same_as<std::remove_const_t<T>, U>;

}  // namespace base

auto fields(base::Is<Error> auto& e) {
  return std::tie(e.code, e.operation, e.detail, e.os_errno, e.peer, e.device, e.file, e.cause,
                  e.remedy);
}

namespace base {

// Makes the reader fail: it reads more bytes than are left.
inline void refuse(Reader& in) { static_cast<void>(in.raw(in.left() + 1)); }

// The functions are members of a class, so that each one finds all others.
class Fields {
 public:
  template <class... T>
  static void put(Writer& out, const T&... values) {
    (putOne(out, values), ...);
  }
  // An enumerator may have any value. A caller that reads one from an untrusted peer must check it.
  template <class... T>
  static void get(Reader& in, T&... values) {
    (getOne(in, values), ...);
  }

 private:
  template <class T>
  static void putOne(Writer& out, const T& value) {
    if constexpr (std::is_enum_v<T> || std::same_as<T, bool>)
      out.put(static_cast<std::uint8_t>(value));
    else if constexpr (std::unsigned_integral<T>)
      out.put(value);
    else if constexpr (std::signed_integral<T>)
      out.put(static_cast<std::make_unsigned_t<T>>(value));
    else if constexpr (std::same_as<T, double>)
      out.put(std::bit_cast<std::uint64_t>(value));
    else if constexpr (requires { value.encode(out); })
      value.encode(out);
    else
      std::apply([&](const auto&... parts) { put(out, parts...); }, fields(value));
  }
  template <class T>
  static void getOne(Reader& in, T& value) {
    if constexpr (std::is_enum_v<T>)
      value = static_cast<T>(in.get<std::uint8_t>());
    else if constexpr (std::same_as<T, bool>)
      value = in.get<std::uint8_t>() != 0;
    else if constexpr (std::unsigned_integral<T>)
      value = in.get<T>();
    else if constexpr (std::signed_integral<T>)
      value = static_cast<T>(in.get<std::make_unsigned_t<T>>());
    else if constexpr (std::same_as<T, double>)
      value = std::bit_cast<double>(in.get<std::uint64_t>());
    else if constexpr (requires { value.decode(in); })
      value.decode(in);
    else
      std::apply([&](auto&... parts) { get(in, parts...); }, fields(value));
  }

  static void putOne(Writer& out, const std::string& text) { out.text(text); }
  static void getOne(Reader& in, std::string& text) { text = in.text(); }

  template <std::size_t N>
  static void putOne(Writer& out, const std::array<std::uint8_t, N>& bytes) {
    out.raw(std::as_bytes(std::span(bytes)));
  }
  template <std::size_t N>
  static void getOne(Reader& in, std::array<std::uint8_t, N>& bytes) {
    bytes = in.array<N>();
  }

  static void putOne(Writer& out, const std::chrono::nanoseconds& time) {
    putOne(out, static_cast<std::int64_t>(time.count()));
  }
  static void getOne(Reader& in, std::chrono::nanoseconds& time) {
    time = std::chrono::nanoseconds(static_cast<std::int64_t>(in.get<std::uint64_t>()));
  }

  template <class T>
  static void putOne(Writer& out, const std::optional<T>& value) {
    putOne(out, value.has_value());
    if (value) putOne(out, *value);
  }
  template <class T>
  static void getOne(Reader& in, std::optional<T>& value) {
    value.reset();
    if (in.get<std::uint8_t>() != 0) getOne(in, value.emplace());
  }

  template <class T>
  static void putOne(Writer& out, const std::vector<T>& list) {
    out.put(static_cast<std::uint32_t>(list.size()));
    for (const T& one : list) putOne(out, one);
  }
  template <class T>
  static void getOne(Reader& in, std::vector<T>& list) {
    list.clear();
    for (auto left = in.get<std::uint32_t>(); left > 0 && in.ok(); --left)
      getOne(in, list.emplace_back());
  }
};

// Returns the fields as bytes in a string.
template <class... T>
std::string packed(const T&... values) {
  Writer out;
  Fields::put(out, values...);
  return {reinterpret_cast<const char*>(out.bytes().data()), out.bytes().size()};
}
// Returns true if the text consists of exactly these fields.
template <class... T>
bool unpack(std::string_view text, T&... into) {
  Reader in(bytesOf(text));
  Fields::get(in, into...);
  return in.finished();
}

}  // namespace base
}  // namespace viaduct
