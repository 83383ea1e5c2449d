// A link between the agent and a backend's link. It dies when kill-peer of VIADUCT_FAULTS hits it,
// and adds kFaultsMark to its ways. Threads: as core::Link.
#pragma once

#include <viaduct/path.h>

#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/faults/faulty_rail.h"
#include "core/backend.h"

namespace viaduct::agent {

class FaultyLink final : public core::Link {
 public:
  // `host` and `rails` outlive the object. All rails are FaultyRails.
  FaultyLink(std::unique_ptr<core::Link> inner, core::LinkHost& host,
             std::span<const std::unique_ptr<core::Rail>> rails)
      : inner_(std::move(inner)), host_(host), rails_(rails) {}

  core::Link& inner() { return *inner_; }
  void kill();

  core::LinkState state() const override;
  void receive(std::span<const std::byte> message, std::vector<core::Fd> fds) override {
    inner_->receive(message, std::move(fds));
  }
  void addPin(const core::RemotePin& pin) override { inner_->addPin(pin); }
  void dropPin(std::uint32_t slot) override { inner_->dropPin(slot); }
  std::optional<std::string_view> reaches(OpKind kind, std::uint32_t local_pin,
                                          std::uint32_t remote_pin) const override;
  bool isPrivate() const override { return inner_->isPrivate(); }
  std::optional<Privacy> protection() const override { return inner_->protection(); }
  bool servedBy(const core::Rail& rail) const override;
  void close(core::Completions& out) override;
  std::function<bool()> settling() const override { return inner_->settling(); }

 private:
  const std::unique_ptr<core::Link> inner_;
  core::LinkHost& host_;
  const std::span<const std::unique_ptr<core::Rail>> rails_;
  bool is_killed_ = false;
  // Each way of the backend's link, with kFaultsMark.
  mutable std::map<std::string, std::string, std::less<>> ways_;
};

}  // namespace viaduct::agent
