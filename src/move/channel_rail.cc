#include "move/channel_rail.h"

#include <algorithm>
#include <utility>

#include "move/channel_link.h"

namespace viaduct::move {
namespace {

// The longest time of one poll(). A thread that stops the rail waits meanwhile.
constexpr auto kTurn = std::chrono::microseconds(500);

}  // namespace

std::size_t ChannelRail::post(const core::Work& work) {
  if (work.ops.empty() || jobs_.full(work.priority)) return 0;
  auto& link = static_cast<ChannelLink&>(*work.link);
  if (work.priority == Priority::kUrgent) jobs_.press(poller_.now());
  Channel* const channel = link.channelFor(index_);
  Job& job = jobs_.add(work, channel);
  if (channel != nullptr) {
    channel->add(job);
  } else {
    job.rail_lost = link.ready();
    jobs_.end(job, link.whyNot(index_));
  }
  return work.ops.size();
}

void ChannelRail::poll(core::Completions& out) {
  turnAll();
  jobs_.takeReports(out);
}

void ChannelRail::handleEvents(core::Completions& out) {
  while (Channel* const one = firstWithEvents())
    one->life().broken() ? one->host().broke(*one) : one->handleEvents();
  jobs_.takeReports(out);
}

void ChannelRail::turnAll() {
  if (active_.empty()) return;
  const auto now = poller_.now();
  jobs_.look(now);
  std::size_t served = 0;
  const Turn turn{.until = now + kTurn, .pause = wanted};
  do {
    Channel& channel = *active_[served++];
    if (channel.life().broken()) continue;
    channel.progress(now, turn);
    // A channel with events stays active, because handleEvents() looks only at active channels.
    // Another thread may poll this rail once more before that.
    channel.active = channel.hasEvents() || !channel.sleep(now);
  } while (served < active_.size() && !turn.isOver(poller_.now()));
  // Channels that were not served come first the next time, so that a busy one starves no other.
  std::rotate(active_.begin(), active_.begin() + static_cast<std::ptrdiff_t>(served),
              active_.end());
  std::erase_if(active_, [](const Channel* channel) { return !channel->active; });
}

Channel* ChannelRail::firstWithEvents() const {
  for (Channel* one : active_)
    if (one->life().broken() || one->hasEvents()) return one;
  return nullptr;
}

void ChannelRail::activate(Channel& channel) {
  channel.awake();
  if (!std::exchange(channel.active, true)) active_.push_back(&channel);
}

void ChannelRail::deactivate(Channel& channel) {
  if (std::exchange(channel.active, false)) std::erase(active_, &channel);
}

}  // namespace viaduct::move
