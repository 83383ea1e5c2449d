#include <string_view>

#include "meet/meeting.h"

namespace viaduct::meet {
namespace {

// FNV-1a: the same everywhere, and enough to see by accident unequal rosters.
class Hash {
 public:
  void add(std::uint64_t number) {
    for (unsigned i = 0; i < 64; i += 8) step(static_cast<unsigned char>(number >> i));
  }
  void add(std::string_view text) {
    add(text.size());
    for (const char c : text) step(static_cast<unsigned char>(c));
  }
  std::uint64_t value() const { return value_; }

 private:
  void step(unsigned char byte) { value_ = (value_ ^ byte) * 0x100000001b3U; }
  std::uint64_t value_ = 0xcbf29ce484222325U;
};

}  // namespace

std::uint64_t rosterHash(const Roster& roster) {
  Hash hash;
  hash.add(roster.group);
  hash.add(roster.epoch);
  for (const Member& member : roster.members) {
    hash.add(member.rank);
    hash.add(member.name);
    hash.add(member.about);
  }
  return hash.value();
}

}  // namespace viaduct::meet
