#include "agent/session/frame_rules.h"

#include <fmt/format.h>

#include <utility>

namespace viaduct::agent {
Error brokenRule(std::string detail) {
  return {.code = Code::kProtocol,
          .operation = "receive",
          .detail = std::move(detail),
          .cause = "the peer broke a rule of the session protocol",
          .remedy = "install the same release at both ends; if it is, do not trust this peer"};
}

namespace {

bool knowsType(std::uint8_t type) { return isKnown(static_cast<FrameType>(type)); }

Status checkTypeSize(std::uint8_t type, std::size_t bytes, std::size_t fds) {
  return checkSize(*ruleOf(static_cast<FrameType>(type)), bytes, fds);
}

}  // namespace

const base::FrameProtocol kSessionFrames{.magic = "VDCT",
                                         .version = kWireVersion,
                                         .other_end = "Viaduct agent",
                                         .knows = &knowsType,
                                         .check_size = &checkTypeSize};

Status checkSize(const FrameRule& rule, std::size_t bytes, std::size_t fds) {
  if (bytes > rule.most_bytes)
    return brokenRule(fmt::format("a frame '{}' of {} bytes exceeds the limit of {}", rule.name,
                                  bytes, rule.most_bytes));
  if (fds > rule.most_fds)
    return brokenRule(fmt::format("a frame '{}' with {} file descriptors exceeds the limit of {}",
                                  rule.name, fds, rule.most_fds));
  return Ok{};
}

Status FrameOrder::take(const FrameRule& rule) {
  if (times_[rowOf(FrameType::kBye)] != 0)
    return brokenRule(fmt::format("a frame '{}' after the goodbye", rule.name));
  if (rule.stage == FrameStage::kSynced && times_[rowOf(FrameType::kSynced)] == 0)
    return brokenRule(fmt::format("a frame '{}' before the frame 'synced'", rule.name));
  const std::uint64_t times = ++times_[rowOf(rule.type)];
  if (rule.most_times != 0 && times > rule.most_times)
    return brokenRule(fmt::format("frame '{}' number {} of the session exceeds the limit of {}",
                                  rule.name, times, rule.most_times));
  return Ok{};
}

}  // namespace viaduct::agent
