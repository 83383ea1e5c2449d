#include "move/channel_link.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/inner_error.h"
#include "base/log.h"

namespace viaduct::move {
namespace {

using base::log;
using base::LogLevel;
using enum ChannelSteps::Event;
using Phase = core::LinkState::Phase;

}  // namespace

ChannelLink::ChannelLink(const LinkContext& context, core::LinkSeed seed, core::LinkHost& host)
    : context_(context), seed_(std::move(seed)), host_(host), own_(context.rails.size()) {
  why_ = linkError(Code::kBusy, "its two ends are not connected yet");
}

void ChannelLink::add(std::unique_ptr<Channel> channel) {
  own_[channel->rail()].all.push_back(channel.get());
  channels_.push_back(std::move(channel));
}

void ChannelLink::moveTo(Channel& channel, std::size_t rail) {
  if (channel.rail() == rail) return;
  std::erase(own_[channel.rail()].all, &channel);
  channel.moveTo(rail);
  own_[rail].all.push_back(&channel);
}

Channel* ChannelLink::find(std::uint32_t index, std::uint32_t life) const {
  if (index >= channels_.size() || channels_[index]->life().number() != life) return nullptr;
  return channels_[index].get();
}

Error ChannelLink::linkError(Code code, std::string detail) const {
  return {.code = code,
          .operation = fmt::format("{} link", context_.backend),
          .detail = std::move(detail),
          .peer = seed_.peer,
          .device = std::string(context_.backend)};
}

std::size_t ChannelLink::countUp() const {
  return static_cast<std::size_t>(std::count_if(channels_.begin(), channels_.end(),
                                                [](const auto& channel) { return channel->up(); }));
}

bool ChannelLink::allDecided() const {
  return std::all_of(channels_.begin(), channels_.end(),
                     [](const auto& channel) { return channel->life().decided(); });
}

void ChannelLink::readyBy(Clock::time_point then) {
  if (deciding_ != 0) return;
  deciding_ = context_.poller.at(then, [this] {
    deciding_ = 0;
    for (const auto& channel : channels_) channel->life().decide();
    decide();
  });
}

void ChannelLink::openNext(Channel& channel) {
  channel.life().on(kOpen);
  auto begun = open(channel);
  if (begun) return;
  Error why = std::move(begun).error();
  why.peer = seed_.peer;
  channel.setWhy(std::move(why));
  channel.close();
  channel.life().on(kOpenFailed);
  rest(channel);
}

void ChannelLink::opened(Channel& channel) {
  const ChannelLife& life = channel.life();
  if (ready() && !life.wasRenewed())
    log(LogLevel::kInfo, "peer {}: {} rail {} is {}", seed_.peer, context_.backend,
        railName(channel), life.isFirst() ? "there" : "back");
  decide();
  // While no channel was up, jobs waited for their own channel. Now another rail can carry them.
  for (const auto& other : channels_)
    if (other->life().atRest() && !other->life().fenced()) giveBack(*other, whyDown(*other));
}

void ChannelLink::decide() {
  if (state_.phase != Phase::kOpening || over_here_ || !allDecided()) return;
  const std::size_t up = countUp();
  if (up == 0) return fail(whyDown(*channels_.front()));
  state_ = {Phase::kReady, readyText()};
  const auto down = std::find_if(channels_.begin(), channels_.end(),
                                 [](const auto& channel) { return !channel->up(); });
  if (down != channels_.end())
    log(LogLevel::kWarning, "peer {}: {} starts with {} of {} rails: {}", seed_.peer,
        context_.backend, up, channels_.size(), whyDown(**down).text());
  host_.changed();
}

void ChannelLink::strike(Channel& channel, Error why) {
  if (over_here_) return;
  channel.is_news = ready() && (channel.life().isFirst() || channel.life().hasBeenUp());
  why.peer = seed_.peer;
  channel.setWhy(std::move(why));
  channel.close();
  channel.life().on(kClose);
  if (context_.ends_with_last && !anyUp() && (ready() || allDecided())) return fail(channel.why());
  tellShut(&channel, ShutReason::kBroken, channel.why());
  if (context_.ends_with_last) decide();
}

void ChannelLink::fence(Channel& channel) {
  if (!channel.life().on(kFence)) return;
  channel.close();
  tellShut(&channel, ShutReason::kFence, {.operation = "fence", .detail = "memory was withdrawn"});
}

void ChannelLink::peerShut(Channel& channel, ShutReason reason, Error why) {
  if (!channel.life().closing()) strike(channel, std::move(why));
  if (!over_here_ && channel.life().on(reason == ShutReason::kFence ? kPeerFenced : kPeerClosed))
    rest(channel);
}

// Both ends are closed, so no byte of that life arrives any more. Unfinished ops can be posted
// again: on this channel once it is open, or on another rail.
void ChannelLink::rest(Channel& channel) {
  channel.settle();
  if (!channel.life().fenced()) {
    decide();
    if (over_here_) return;
    const bool any = anyUp();
    // Logged only now, because a lost peer breaks all channels, which says nothing about a rail.
    if (std::exchange(channel.is_news, false) && any)
      log(LogLevel::kWarning, "peer {}: {} rail {} has failed, others continue: {}", seed_.peer,
          context_.backend, railName(channel), channel.why().text());
    if (any) giveBack(channel, channel.why());
    if (!any && channel.life().breaks() > context_.most_breaks) return fail(channel.why());
  }
  if (!seed_.dialer) return;
  if (channel.life().fenced()) return openNext(channel);
  if (channel.retry != 0) context_.poller.forgetTimer(channel.retry);
  channel.retry =
      context_.poller.at(context_.poller.now() + channel.life().wait(), [this, &channel] {
        channel.retry = 0;
        openNext(channel);
      });
}

void ChannelLink::giveBack(Channel& channel, const Error& why) {
  channel.forgetJobs();
  context_.rails[channel.rail()]->jobs().giveBack(channel, why);
}

void ChannelLink::peerOver(Error why) {
  if (std::exchange(over_there_, true)) return;
  if (!over_here_) return fail(std::move(why));
  finish();
}

// Our bytes may still reach the peer's memory. The link's jobs therefore come back when the peer
// has closed all channels too, or when the session ends.
void ChannelLink::fail(Error why) {
  if (over_here_) return;
  why.peer = seed_.peer;
  why_ = std::move(why);
  state_ = {Phase::kUnusable, base::innerText(why_), why_.code == Code::kExhausted || lacked()};
  end();
  tellShut(nullptr, ShutReason::kOver, why_);
  finish();
  host_.changed();
}

void ChannelLink::end() {
  over_here_ = true;
  if (deciding_ != 0) context_.poller.forgetTimer(std::exchange(deciding_, 0));
  for (const auto& channel : channels_) {
    if (channel->retry != 0) context_.poller.forgetTimer(std::exchange(channel->retry, 0));
    channel->close();
    channel->life().on(kEnd);
  }
}

void ChannelLink::finish() {
  if (!over_there_) return;
  for (const auto& channel : channels_) channel->forgetJobs();
  for (ChannelRail* rail : context_.rails) rail->jobs().release(*this, why_);
}

void ChannelLink::close(core::Completions& out) {
  if (!over_here_) {
    why_ = linkError(Code::kPeerLost, "the session has ended");
    state_ = {Phase::kUnusable, base::innerText(why_)};
  }
  end();
  for (const auto& channel : channels_) channel->forgetJobs();
  for (ChannelRail* rail : context_.rails) rail->jobs().take(*this, why_, out);
}

std::string_view ChannelLink::railName(const Channel& channel) const {
  return context_.rails[channel.rail()]->name();
}

Error ChannelLink::whyDown(const Channel& channel) const {
  return channel.why().operation.empty()
             ? linkError(Code::kTimeout, "the peer did not open its end in time")
             : channel.why();
}

Error ChannelLink::whyNot(std::size_t rail) const {
  const auto& own = own_[rail].all;
  return ready() && !own.empty() ? whyDown(*own.front()) : why_;
}

// Returns one of the rail's channels that are up, each in turn. If no channel of the link is up,
// returns one of the rail's channels that are down, so that jobs wait there.
Channel* ChannelLink::channelFor(std::size_t rail) {
  if (!ready()) return nullptr;
  auto& [own, turn] = own_[rail];
  for (std::size_t i = 0; i < own.size(); ++i) {
    turn = turn + 1 < own.size() ? turn + 1 : 0;
    if (own[turn]->up()) return own[turn];
  }
  return own.empty() || anyUp() ? nullptr : own.front();
}

bool ChannelLink::servedBy(const core::Rail& rail) const {
  const auto& own = own_[static_cast<const ChannelRail&>(rail).index()].all;
  const auto up = [](const Channel* channel) { return channel->up(); };
  return !own.empty() && (std::any_of(own.begin(), own.end(), up) || !anyUp());
}

}  // namespace viaduct::move
