// One UCP context as a rail: drives its channels to all peers. Threads: under the agent's lock.
#pragma once

#include <list>
#include <string>
#include <vector>

#include "backends/ucx/channel.h"
#include "core/backend.h"

namespace viaduct::ucx {

class UcxLink;

class UcxRail final : public core::Rail, public JobOwner {
 public:
  UcxRail(std::string name, std::size_t index) : name_(std::move(name)), index_(index) {}

  std::string_view name() const override { return name_; }
  std::size_t index() const { return index_; }
  std::size_t post(const core::Work& work) override;
  void poll(core::Completions& out) override;
  void cancel(core::Tag tag) override;
  bool busy() const override { return !active_.empty() || !reports_.empty(); }

  void report(Job& job) override;

  // The rail turns this channel until it sleeps.
  void activate(Channel& channel);
  void deactivate(Channel& channel);

  // For a link that is over. release(): its jobs end at the next poll(); take(): they end now.
  void release(const UcxLink& link, const Error& why);
  void take(const UcxLink& link, const Error& why, core::Completions& out);
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
  std::list<Job> jobs_, spare_;
  std::vector<Job*> reports_;
  std::vector<Channel*> active_;
};

}  // namespace viaduct::ucx
