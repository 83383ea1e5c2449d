// Finds the devices that carried a row's bytes. Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "measure/proof/account.h"
#include "measure/result/row.h"

namespace viaduct::measure::proof {

// The way of bytes that did not pass the devices which their share names.
enum class Detour : std::uint8_t {
  kNone,
  kOtherInterface,
  kTcp,       // RDMA bytes on an Ethernet device
  kLoopback,  // bytes of a network on the loopback device
  kMemory,    // no device carried them: a copy on one host
};

struct SilentRail {
  std::string device = {};
  std::string host = {};
  friend bool operator==(const SilentRail&, const SilentRail&) = default;
};

// Returns the counted bytes and the payload as text for a proof: "eth0 of node-a sent 12.3 GB for
// 12.2 GB of payload".
std::string countedText(const CountedPayload& counted);
// True if the counted bytes prove that the devices carried the payload.
bool isCarried(const CountedPayload& counted);
// True if a device that counted only `counted` bytes cannot have carried the payload.
bool isQuiet(double counted, double payload);

struct Proof {
  std::vector<ProvenShare> path = {};  // one for each share of the account
  std::string text = {};               // one line for people
  Detour detour = Detour::kNone;       // the worst detour of all shares
  std::string where = {};              // the detour as text
  std::vector<SilentRail> silent = {};
  std::vector<CountedPayload> counted = {};
};

// `transfer_bytes` is the size of one transfer. It decides whether all rails had to take part.
Proof prove(const Account& account, std::uint64_t transfer_bytes);

}  // namespace viaduct::measure::proof
