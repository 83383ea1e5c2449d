// Which devices really carried a row's bytes. Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "measure/proof/account.h"
#include "measure/result/row.h"

namespace viaduct::measure::proof {

// Where bytes went that did not go where their share says.
enum class Detour : std::uint8_t {
  kNone,
  kOtherInterface,
  kTcp,       // RDMA's bytes on an Ethernet device
  kLoopback,  // a network's bytes on the loopback device
  kMemory,    // no device carried them: a copy on one host
};

struct SilentRail {
  std::string device = {};
  std::string host = {};
  friend bool operator==(const SilentRail&, const SilentRail&) = default;
};

struct Proof {
  std::vector<ProvenShare> path = {};  // one for each of the account's shares
  std::string text = {};               // one line for people
  Detour detour = Detour::kNone;       // of the worst share
  std::string where = {};              // the detour in words
  std::vector<SilentRail> silent = {};
};

// `transfer_bytes`: of one transfer, which says whether all rails had to take part.
Proof prove(const Account& account, std::uint64_t transfer_bytes);

}  // namespace viaduct::measure::proof
