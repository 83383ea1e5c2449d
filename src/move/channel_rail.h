// A rail that drives channels to all peers. Threads: one at a time, while other threads may run
// other rails. activate() and deactivate(): a thread that runs the rail, or that has stopped it.
#pragma once

#include <string>
#include <vector>

#include "core/backend.h"
#include "move/channel.h"
#include "move/job_table.h"

namespace viaduct::move {

class ChannelRail final : public core::Rail {
 public:
  ChannelRail(std::string name, std::size_t index, const base::Poller& poller)
      : name_(std::move(name)), index_(index), poller_(poller) {}

  std::string_view name() const override { return name_; }
  std::size_t index() const { return index_; }
  std::size_t post(const core::Work& work) override;
  void poll(core::Completions& out) override;
  bool hasEvents() const override { return firstWithEvents() != nullptr; }
  void handleEvents(core::Completions& out) override;
  void cancel(const core::Sink& sink) override { jobs_.cancel(sink); }
  bool busy() const override {
    for (const Channel* one : active_)
      if (!one->dozes()) return true;
    return jobs_.hasReports();
  }
  void collect(core::Completions& out) override { jobs_.takeReports(out); }

  JobTable& jobs() { return jobs_; }
  // Has poll() call the channel's progress(), until its sleep() returns true or deactivate() is
  // called.
  void activate(Channel& channel);
  void deactivate(Channel& channel);

 private:
  void turnAll();
  Channel* firstWithEvents() const;

  const std::string name_;
  const std::size_t index_;
  const base::Poller& poller_;
  JobTable jobs_;
  std::vector<Channel*> active_;
};

}  // namespace viaduct::move
