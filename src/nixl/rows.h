// The numbers of a list of descriptors. Threads: plain values.
#pragma once

#include <viaduct/blocks.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace viaduct::nixl {

// One number for each row. In most lists all rows have the same number, which is then stored once.
class Column {
 public:
  explicit Column(std::uint64_t same = 0) : same_(same) {}
  std::uint64_t operator[](std::size_t row) const { return each_.empty() ? same_ : each_[row]; }
  bool isSame() const { return each_.empty(); }
  bool isSame(std::uint64_t number) const { return each_.empty() && same_ == number; }
  // Appends the number of one more row to a column of `rows` rows.
  void add(std::size_t rows, std::uint64_t number);
  void set(std::size_t row, std::size_t rows, std::uint64_t number);
  void remove(std::size_t row);

 private:
  std::uint64_t same_;  // if `each_` is empty
  std::vector<std::uint64_t> each_;
};

// Rows (address, bytes, device), or rows (address, bytes, device, stride, count). Rows may be
// empty, and may overlap.
class Rows {
 public:
  Rows() = default;
  // Rows of three numbers, of which only the addresses differ.
  Rows(std::vector<std::uint64_t> addresses, std::uint64_t bytes, std::uint64_t device)
      : addresses_(std::move(addresses)), bytes_(bytes), devices_(device) {}
  std::size_t count() const { return runs_.empty() ? addresses_.size() : runs_.size(); }
  // Whether the rows have five numbers.
  bool ofRuns() const { return !runs_.empty(); }
  bool mayAdd(bool of_runs) const { return of_runs ? addresses_.empty() : runs_.empty(); }
  const std::vector<Run>& runs() const { return runs_; }
  // addresses() and bytes() are for rows of three numbers.
  const std::vector<std::uint64_t>& addresses() const { return addresses_; }
  const Column& bytes() const { return bytes_; }
  Extent extent(std::size_t row) const { return {addresses_[row], bytes_[row]}; }
  std::vector<Extent> extents() const;
  // A row of three or of five numbers, as a Run.
  Run run(std::size_t row) const {
    return ofRuns() ? runs_[row] : Run{addresses_[row], 0, bytes_[row], 1};
  }
  const Column& devices() const { return devices_; }

  void reserve(std::size_t rows) { addresses_.reserve(rows); }
  // The caller adds rows of one kind only.
  void add(const Extent& extent, std::uint64_t device) {
    if (addresses_.empty() || !bytes_.isSame(extent.bytes) || !devices_.isSame(device)) [[unlikely]]
      addOther(extent.bytes, device);
    addresses_.push_back(extent.address);
  }
  void add(const Run& run, std::uint64_t device) {
    devices_.add(runs_.size(), device);
    runs_.push_back(run);
  }
  // Replaces a row by row `from` of other rows of the same kind.
  void set(std::size_t row, const Rows& other, std::size_t from);
  void remove(std::size_t row);
  void resize(std::size_t rows);  // new rows are zeros
  friend bool operator==(const Rows& one, const Rows& other);

 private:
  void addOther(std::uint64_t bytes, std::uint64_t device);

  std::vector<std::uint64_t> addresses_;
  Column bytes_;
  std::vector<Run> runs_;
  Column devices_;
};

}  // namespace viaduct::nixl
