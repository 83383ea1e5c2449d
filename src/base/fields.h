// Reads and writes messages as lists of fields. The function `fields(value)` beside a type lists
// the type's fields once, for both directions. Limits stand beside the fields:
//
//   auto fields(base::Is<Point> auto& p) { return base::list(p.x, base::atMost(255, p.name)); }
//
// A type may instead have encode(Writer&) and decode(Reader&) of its own. Threads: pure functions.
#pragma once

#include <viaduct/result.h>

#include <array>
#include <bit>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/printable.h"

namespace viaduct {
namespace base {

// True if T is U or const U.
template <class T, class U>
concept Is = std::same_as<std::remove_const_t<T>, U>;

// A list of fields: references to members, and the wrappers below by value.
template <class... T>
std::tuple<T...> list(T&&... parts) {
  return {std::forward<T>(parts)...};
}

template <class T>
concept Sized = requires(const T& value) { value.size(); };
template <class T>
concept List = !std::same_as<T, Bytes> && requires(T& value) { value.emplace_back(); };

// Reading refuses a value above `limit`. For a text or a list, `limit` is that of its size. `each`
// limits the size of each element of a list.
template <class T>
struct AtMost {
  using Limit = std::conditional_t<Sized<T>, std::size_t, std::remove_const_t<T>>;
  Limit limit;
  T& value;
  std::size_t each;
};
template <class T>
AtMost<T> atMost(typename AtMost<T>::Limit limit, T& value, std::size_t each = SIZE_MAX) {
  return {limit, value, each};
}

// Like atMost() for a text that people read, such as a name.
// Reading also refuses control characters and bytes that are not UTF-8.
template <class T>
struct Line {
  std::size_t limit;
  T& value;
};
template <class T>
Line<T> line(std::size_t limit, T& value) {
  return {limit, value};
}

// Like atMost() for a text, and writing sends only its first `limit` bytes. Reading makes the text
// printable.
template <class T>
struct CutTo {
  std::size_t limit;
  T& text;
};
template <class T>
CutTo<T> cutTo(std::size_t limit, T& text) {
  return {limit, text};
}

// All bytes up to the end of the message, without a length. Reading copies nothing.
template <class T>
struct Rest {
  T& bytes;
};
template <class T>
Rest<T> rest(T& bytes) {
  return {bytes};
}

// A condition, which takes no bytes. Reading refuses the message unless holds() is true for the
// fields before it.
template <class Holds>
struct Must {
  Holds holds;
};
template <class Holds>
Must<Holds> must(Holds holds) {
  return {holds};
}
inline auto noOverflow(const std::uint64_t& address, const std::uint64_t& bytes) {
  return must([&] { return address + bytes >= address; });
}

}  // namespace base

// The limit for each text of an error.
inline constexpr std::size_t kMaxErrorText = 4096;

auto fields(base::Is<Error> auto& e) {
  const auto text = [](auto& one) { return base::cutTo(kMaxErrorText, one); };
  return base::list(base::atMost(kLastCode, e.code), text(e.operation), text(e.detail), e.os_errno,
                    text(e.peer), text(e.device), text(e.file), text(e.cause), text(e.remedy));
}

namespace base {

// The functions are members of a class, so that each one finds all others.
class Fields {
 public:
  template <class... T>
  static void put(Writer& out, const T&... values) {
    (putOne(out, values), ...);
  }
  // An enumerator may have any value. A caller that reads one from an untrusted peer must check it,
  // for example with atMost().
  template <class... T>
  static void get(Reader& in, T&&... values) {
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
      std::apply([&](auto&&... parts) { get(in, parts...); }, fields(value));
  }

  static void putOne(Writer& out, const std::string& text) { out.text(text); }
  static void getOne(Reader& in, std::string& text) { text = in.text(); }
  static void putOne(Writer& out, const std::string_view& text) { out.text(text); }
  static void getOne(Reader& in, std::string_view& text) { text = textOf(in.sized()); }
  static void putOne(Writer& out, const Bytes& bytes) { out.sized(bytes); }
  static void getOne(Reader& in, Bytes& bytes) {
    const auto part = in.sized();
    bytes.assign(part.begin(), part.end());
  }

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
    getOne(in, list, SIZE_MAX, SIZE_MAX);
  }
  // Adds one element at a time. A false count thus fails at the end of the message, before much
  // memory is allocated.
  template <class T>
  static void getOne(Reader& in, std::vector<T>& list, std::size_t limit, std::size_t each) {
    list.clear();
    auto left = in.get<std::uint32_t>();
    if (left > limit) in.refuse(left, limit);
    for (; left > 0 && in.ok(); --left) {
      T& one = list.emplace_back();
      getOne(in, one);
      if constexpr (Sized<T>)
        if (one.size() > each) in.refuse(one.size(), each);
    }
  }

  template <class T>
  static void putOne(Writer& out, const AtMost<T>& part) {
    putOne(out, part.value);
  }
  template <class T>
  static void getOne(Reader& in, AtMost<T>& part) {
    if constexpr (List<T>) {
      getOne(in, part.value, part.limit, part.each);
    } else {
      getOne(in, part.value);
      if (sizeOf(part.value) > part.limit)
        in.refuse(static_cast<std::uint64_t>(sizeOf(part.value)),
                  static_cast<std::uint64_t>(part.limit));
    }
  }

  static auto sizeOf(const auto& value) {
    if constexpr (requires { value.size(); })
      return value.size();
    else
      return value;
  }

  template <class T>
  static void putOne(Writer& out, const CutTo<T>& part) {
    out.text(std::string_view(part.text).substr(0, part.limit));
  }
  template <class T>
  static void getOne(Reader& in, CutTo<T>& part) {
    AtMost<T> whole{part.limit, part.text, SIZE_MAX};
    getOne(in, whole);
    if (!isPrintable(part.text)) part.text = printable(part.text, part.limit);
  }

  template <class T>
  static void putOne(Writer& out, const Line<T>& part) {
    putOne(out, part.value);
  }
  template <class T>
  static void getOne(Reader& in, Line<T>& part) {
    getOne(in, part.value);
    if (part.value.size() > part.limit || !isPrintable(part.value)) in.refuse();
  }

  template <class T>
  static void putOne(Writer& out, const Rest<T>& part) {
    out.raw(part.bytes);
  }
  template <class T>
  static void getOne(Reader& in, Rest<T>& part) {
    part.bytes = in.raw(in.left());
  }

  template <class Holds>
  static void putOne(Writer&, const Must<Holds>&) {}
  template <class Holds>
  static void getOne(Reader& in, Must<Holds>& part) {
    if (in.ok() && !part.holds()) in.refuse();
  }
};

// Appends the fields' bytes to `out`, whose memory is used again.
template <class... T>
void append(Bytes& out, const T&... values) {
  Writer writer(std::move(out));
  Fields::put(writer, values...);
  out = writer.take();
}
template <class... T>
Bytes encode(const T&... values) {
  Writer writer;
  Fields::put(writer, values...);
  return writer.take();
}
// Refuses bytes that are not exactly one T. `name` is that of the message, for the error.
template <class T>
Result<T> decode(std::span<const std::byte> bytes, std::string_view name = T::kName) {
  Reader in(bytes);
  T out{};
  Fields::get(in, out);
  if (in.finished()) return out;
  return Error{.code = Code::kProtocol,
               .operation = "decode",
               .detail = std::string(name).append(": ").append(in.fault())};
}

// Returns the fields as bytes in a string.
template <class... T>
std::string packed(const T&... values) {
  return std::string(textOf(base::encode(values...)));
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
