// What is open for one rail: drives its channels to all peers. Threads: under the agent's lock.
#pragma once

#include <algorithm>
#include <list>
#include <string>
#include <vector>

#include "core/backend.h"
#include "move/channel.h"

namespace viaduct::move {

class FabricLink;

class FabricRail final : public core::Rail, public JobOwner {
 public:
  FabricRail(std::string name, std::size_t index, const base::Poller& poller)
      : name_(std::move(name)), index_(index), poller_(poller) {}

  std::string_view name() const override { return name_; }
  std::size_t index() const { return index_; }
  std::size_t post(const core::Work& work) override;
  void poll(core::Completions& out) override;
  void cancel(core::Tag tag) override;
  bool busy() const override {
    return !reports_.empty() || std::any_of(active_.begin(), active_.end(),
                                            [](const Channel* one) { return !one->dozes(); });
  }
  bool mayHaveEnded() const override { return !reports_.empty(); }

  void report(Job& job) override;

  // The rail makes progress on this channel until it sleeps.
  void activate(Channel& channel);
  void deactivate(Channel& channel);

  // For a link that is over. release(): its jobs end at the next poll(); take(): they end now.
  void release(const FabricLink& link, const Error& why);
  void take(const FabricLink& link, const Error& why, core::Completions& out);
  // Jobs that use this local pin fail; the channels that have some of it under way.
  std::vector<Channel*> dropSlot(std::uint32_t slot);

 private:
  Job& newJob(const core::Work& work);
  // Reports what there is; the job is gone after its last report.
  void flush(Job& job, core::Completions& out);
  void turnAll();
  Channel* firstBroken() const;

  const std::string name_;
  const std::size_t index_;
  const base::Poller& poller_;
  std::list<Job> jobs_, spare_;
  std::vector<Job*> reports_;
  std::vector<Channel*> active_;
};

}  // namespace viaduct::move
