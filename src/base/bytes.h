// Writes wire bytes in little-endian order, and reads them with length checks.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace viaduct::base {

using Bytes = std::vector<std::byte>;

inline std::span<const std::byte> bytesOf(std::string_view text) {
  return std::as_bytes(std::span(text));
}
inline std::string_view textOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Each memcpy is compiled to one move. A loop over bytes would stay a loop at -O2, which is slow
// for the many entries of frames.
static_assert(std::endian::native == std::endian::little, "a big-endian target has to swap bytes");

template <class T>
void storeLittle(std::byte* to, T value) {
  static_assert(std::is_unsigned_v<T>);
  std::memcpy(to, &value, sizeof(T));
}

template <class T>
T loadLittle(const std::byte* from) {
  static_assert(std::is_unsigned_v<T>);
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

class Writer {
 public:
  Writer() { out_.reserve(128); }                       // most messages fit
  explicit Writer(Bytes out) : out_(std::move(out)) {}  // appends to `out`

  template <class T>
  Writer& put(T value) {
    static_assert(std::is_unsigned_v<T>);
    std::array<std::byte, sizeof(T)> bytes;
    storeLittle(bytes.data(), value);
    return raw(bytes);
  }
  Writer& raw(std::span<const std::byte> bytes) {
    out_.insert(out_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  // Appends a 32-bit length, then the bytes.
  Writer& sized(std::span<const std::byte> bytes) {
    return put(static_cast<std::uint32_t>(bytes.size())).raw(bytes);
  }
  Writer& text(std::string_view text) { return sized(bytesOf(text)); }
  // Appends each number with seven bits in a byte, the lowest first. The top bit of a byte says
  // that another byte follows.
  template <class... Number>
  Writer& varints(Number... numbers) {
    std::array<std::byte, 10 * sizeof...(numbers)> bytes;
    std::size_t count = 0;
    const auto add = [&](std::uint64_t left) {
      for (; left >= 0x80U; left >>= 7U) bytes[count++] = static_cast<std::byte>(left | 0x80U);
      bytes[count++] = static_cast<std::byte>(left);
    };
    (add(numbers), ...);
    return raw(std::span(bytes).first(count));
  }

  Bytes take() { return std::move(out_); }
  const Bytes& bytes() const { return out_; }

 private:
  Bytes out_;
};

// Reads until a field is incomplete or refused. From then on every value is zero or empty, and ok()
// is false.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> in) : in_(in) {}

  template <class T>
  T get() {
    const auto part = raw(sizeof(T));
    return part.empty() ? T{0} : loadLittle<T>(part.data());
  }
  std::span<const std::byte> raw(std::size_t bytes) {
    if (bytes > in_.size()) ok_ = false;
    if (!ok_) return {};
    const auto part = in_.first(bytes);
    in_ = in_.subspan(bytes);
    return part;
  }
  std::span<const std::byte> sized() { return raw(get<std::uint32_t>()); }
  std::uint64_t varint() {
    std::uint64_t number = 0;
    std::size_t at = 0;
    for (unsigned shift = 0; shift < 64 && ok_ && at < in_.size(); shift += 7) {
      const auto byte = static_cast<std::uint64_t>(in_[at++]);
      number |= (byte & 0x7fU) << shift;
      if ((byte & 0x80U) != 0) continue;
      in_ = in_.subspan(at);
      return number;
    }
    if (ok_ && at < in_.size()) refuse();  // the varint is longer than 64 bits need
    ok_ = false;
    return 0;
  }
  std::string text() { return std::string(textOf(sized())); }
  template <std::size_t N>
  std::array<std::uint8_t, N> array() {
    std::array<std::uint8_t, N> out{};
    const auto part = raw(N);
    if (!part.empty()) std::memcpy(out.data(), part.data(), N);
    return out;
  }

  // Called by a reader's user that does not allow the value just read.
  void refuse() {
    refused_ = true;
    ok_ = false;
  }
  // Refuses a value or size above `limit`. The error shows both numbers.
  void refuse(std::uint64_t value, std::uint64_t limit) {
    if (ok_) above_ = {value, limit};
    refuse();
  }
  bool ok() const { return ok_; }
  std::size_t left() const { return in_.size(); }
  // True if every field was complete and allowed, and no bytes are left.
  bool finished() const { return ok_ && in_.empty(); }
  // The reason why finished() is false, for an error.
  std::string fault() const {
    if (above_.first > above_.second)
      return std::to_string(above_.first) + " exceeds the limit of " +
             std::to_string(above_.second);
    if (refused_) return "beyond what is allowed";
    return ok_ ? "bytes left over" : "cut short";
  }

 private:
  std::span<const std::byte> in_;
  bool ok_ = true, refused_ = false;
  std::pair<std::uint64_t, std::uint64_t> above_ = {};  // the refused value, and its limit
};

}  // namespace viaduct::base
