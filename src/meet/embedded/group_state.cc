#include "meet/embedded/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace viaduct::meet::embedded {
namespace {

constexpr std::size_t kNamesInText = 8;

PacketPtr refused(const Error& why) {
  return makePacket(Type::kRefused, ErrorMessage{why}.encode());
}

}  // namespace

std::string Table::nameOf(const Sitter& sitter) const {
  const std::string& name = sitter.request.name;
  if (live_) return fmt::format("rank {} ({})", sitter.rank, name);
  return sitter.request.rank ? fmt::format("rank {} ({})", *sitter.request.rank, name) : name;
}

// In the order of ranks, or of coming.
std::string Table::list(const std::function<bool(const Sitter&)>& which) const {
  std::vector<const Sitter*> those;
  for (const auto& [guest, sitter] : sitters_)
    if (which(sitter)) those.push_back(&sitter);
  std::sort(those.begin(), those.end(), [](const Sitter* a, const Sitter* b) {
    return std::pair(a->rank, a->order) < std::pair(b->rank, b->order);
  });
  std::string out;
  for (std::size_t i = 0; i < std::min(those.size(), kNamesInText); ++i)
    out += fmt::format("{}{}", i == 0 ? "" : ", ", nameOf(*those[i]));
  if (those.size() > kNamesInText) out += fmt::format(" and {} more", those.size() - kNamesInText);
  return out;
}

void Table::join(GuestId guest, const JoinRequest& request) {
  door_.push_back({guest, request, calls_ + 1});
  reconsider();
}

// Whoever waits at the door and can be decided about is; until nothing changes any more.
void Table::reconsider() {
  while (admitOne()) {
  }
  if (full() && !live_ && form_call_ == 0) form_call_ = calls_ + 1;
  callIfNeeded();
}

bool Table::admitOne() {
  for (auto at = door_.begin(); at != door_.end(); ++at) {
    const Verdict verdict = judge(*at);
    if (verdict == Verdict::kWait) continue;
    if (verdict == Verdict::kInTheWay && answered_ < at->needs_call) continue;
    const Newcomer newcomer = std::move(*at);
    door_.erase(at);
    if (verdict == Verdict::kWelcome)
      seat(newcomer.guest, newcomer.request);
    else
      post_.send(newcomer.guest, refused(refusal(newcomer)));
    return true;
  }
  return false;
}

Table::Verdict Table::judge(const Newcomer& newcomer) const {
  if (live_) return finished_ > 0 ? Verdict::kWait : Verdict::kInTheWay;
  if (sitters_.empty()) return Verdict::kWelcome;
  if (newcomer.request.size != size_) return Verdict::kInTheWay;
  if (newcomer.request.rank && asked_.contains(*newcomer.request.rank)) return Verdict::kInTheWay;
  return full() ? Verdict::kWait : Verdict::kWelcome;
}

Error Table::refusal(const Newcomer& newcomer) const {
  Error why{.code = Code::kBusy, .operation = fmt::format("join group {}", group_)};
  if (live_) {
    why.detail = fmt::format("the group is complete and running: {} members, for {:.1f} s, {}",
                             size_, std::chrono::duration<double>(Clock::now() - formed_).count(),
                             list([](const Sitter&) { return true; }));
    why.cause = "a second run has the same name, or an extra, late or restarted member joins";
    why.remedy = "wait for the end of that run, or use another group name";
  } else if (newcomer.request.size != size_) {
    const auto first = std::min_element(
        sitters_.begin(), sitters_.end(),
        [](const auto& a, const auto& b) { return a.second.order < b.second.order; });
    why.code = Code::kInvalid;
    why.detail =
        fmt::format("the group forms with {} members, as {} requested; this member requests {}",
                    size_, nameOf(first->second), newcomer.request.size);
    why.cause = "members of one group were started with different sizes";
    why.remedy = "give all members the same size, or use another group name";
  } else {
    const std::uint32_t rank = newcomer.request.rank.value_or(0);
    const auto holder = sitters_.find(asked_.at(rank));
    why.detail = fmt::format("rank {} is taken by {}", rank, holder->second.request.name);
    why.cause = "two members were started with the same rank";
    why.remedy = "give each its own rank, or none";
  }
  return why;
}

void Table::seat(GuestId guest, const JoinRequest& request) {
  if (sitters_.empty()) size_ = request.size;
  if (request.rank) asked_.emplace(*request.rank, guest);
  sitters_.emplace(guest, Sitter{.request = request, .order = ++coming_});
}

// One call at a time: it serves everyone who began to wait before it began.
void Table::callIfNeeded() {
  if (unanswered_ > 0) return;
  const bool for_door = std::any_of(door_.begin(), door_.end(), [&](const Newcomer& newcomer) {
    return newcomer.needs_call > calls_ && judge(newcomer) == Verdict::kInTheWay;
  });
  if (!for_door && form_call_ <= calls_) return;
  ++calls_;
  for (auto& [guest, sitter] : sitters_) {
    if (sitter.finished) continue;
    sitter.expects_pong = post_.ping(guest);
    ++unanswered_;
  }
}

void Table::pong(GuestId guest, std::uint64_t number) {
  const auto found = sitters_.find(guest);
  if (found == sitters_.end() || number == 0 || found->second.expects_pong != number) return;
  found->second.expects_pong = 0;
  answered();
}

void Table::answered() {
  if (--unanswered_ > 0) return;
  answered_ = calls_;
  if (!live_ && form_call_ != 0 && answered_ >= form_call_) form();
  reconsider();
}

void Table::form() {
  form_call_ = 0;
  assignRanks();
  live_ = true;
  epoch_ = ++epochs_;
  round_ = 0;
  formed_ = Clock::now();
  FormedMessage formed{.epoch = epoch_};
  for (std::uint32_t rank = 0; rank < size_; ++rank) {
    Sitter& sitter = sitters_.at(ranks_[rank]);
    sitter.rank = rank;
    formed.members.push_back({rank, sitter.request.name, sitter.request.about});
  }
  const PacketPtr packet = makePacket(Type::kFormed, formed.encode());
  for (std::uint32_t rank = 0; rank < size_; ++rank) {
    post_.send(ranks_[rank], makePacket(Type::kSeat, NumberMessage{rank}.encode()));
    post_.send(ranks_[rank], packet);
  }
  post_.say(fmt::format("group {} formed: {} members, epoch {:x}, rank 0 is {}", group_, size_,
                        epoch_, formed.members[0].name));
}

void Table::assignRanks() {
  ranks_.assign(size_, 0);
  std::vector<std::pair<std::uint64_t, GuestId>> others;
  for (const auto& [guest, sitter] : sitters_) {
    if (sitter.request.rank)
      ranks_[*sitter.request.rank] = guest;
    else
      others.emplace_back(sitter.order, guest);
  }
  std::sort(others.begin(), others.end());
  auto free = ranks_.begin();
  for (const auto& [order, guest] : others) {
    free = std::find(free, ranks_.end(), GuestId{0});
    *free = guest;
  }
}

Status Table::gather(GuestId guest, GatherMessage message) {
  const auto found = sitters_.find(guest);
  if (found == sitters_.end()) return Ok{};
  Sitter& sitter = found->second;
  if (!live_ || sitter.finished || sitter.given || message.round != round_)
    return Error{.code = Code::kProtocol,
                 .operation = "gather",
                 .detail = "the member is not in this round"};
  if (!values_.take(message.value.size())) {
    Error why = values_.refusal(fmt::format("group {}", group_), message.value.size(),
                                "one round of a group", "all members");
    why.remedy = "gather fewer bytes, or use several rounds";
    end(std::move(why));
    return Ok{};
  }
  sitter.given = true;
  sitter.value = std::move(message.value);
  ++given_;
  if (finished_ > 0)
    end({.code = Code::kPeerLost,
         .operation = fmt::format("group {}", group_),
         .detail = fmt::format("{} left while {} waits for all",
                               list([](const Sitter& s) { return s.finished; }), nameOf(sitter))});
  else if (given_ == size_)
    finishRound();
  return Ok{};
}

void Table::finishRound() {
  ValuesMessage all{.round = round_};
  for (const GuestId guest : ranks_) {
    Sitter& sitter = sitters_.at(guest);
    all.values.push_back(std::move(sitter.value));
    sitter.value.clear();
    sitter.given = false;
  }
  given_ = 0;
  ++round_;
  values_.give(values_.used());
  const PacketPtr packet = makePacket(Type::kValues, all.encode());
  for (const GuestId guest : ranks_) post_.send(guest, packet);
}

void Table::requestStop(GuestId guest) {
  const auto found = sitters_.find(guest);
  if (found == sitters_.end() || !live_) return;
  const PacketPtr packet = makePacket(Type::kStop, NumberMessage{found->second.rank}.encode());
  for (const auto& [member, sitter] : sitters_)
    if (!sitter.finished) post_.send(member, packet);
}

void Table::abandon(GuestId guest, const std::string& reason) {
  const auto found = sitters_.find(guest);
  if (found == sitters_.end() || !live_) return;
  end({.code = Code::kCancelled,
       .operation = fmt::format("group {}", group_),
       .detail = fmt::format("{} ended it: {}", nameOf(found->second), reason),
       .peer = found->second.request.name});
}

void Table::finish(GuestId guest) {
  const auto found = sitters_.find(guest);
  if (found == sitters_.end() || !live_ || found->second.finished) return;
  found->second.finished = true;
  ++finished_;
  post_.send(guest, makePacket(Type::kFinished));
  if (given_ > 0) {
    end({.code = Code::kPeerLost,
         .operation = fmt::format("group {}", group_),
         .detail = fmt::format("{} left while {} waits for all", nameOf(found->second),
                               list([](const Sitter& s) { return s.given; }))});
  } else if (finished_ == size_) {
    post_.say(fmt::format("group {} ended: all {} members left", group_, size_));
    clear();
    reconsider();
  } else if (std::exchange(found->second.expects_pong, 0) != 0) {
    answered();
  }
}

void Table::gone(GuestId guest, const std::string& how) {
  const auto waiting = std::find_if(door_.begin(), door_.end(),
                                    [&](const Newcomer& one) { return one.guest == guest; });
  if (waiting != door_.end()) door_.erase(waiting);
  const auto found = sitters_.find(guest);
  if (found == sitters_.end() || found->second.finished) return;
  if (live_) {
    Error why{.code = Code::kPeerLost,
              .operation = fmt::format("group {}", group_),
              .detail = fmt::format("{} died: {}", nameOf(found->second), how),
              .peer = found->second.request.name};
    sitters_.erase(found);
    return end(std::move(why));
  }
  if (const auto& rank = found->second.request.rank) asked_.erase(*rank);
  const bool was_called = found->second.expects_pong != 0;
  sitters_.erase(found);
  form_call_ = 0;
  if (was_called)
    answered();
  else
    reconsider();
}

void Table::end(Error why) {
  post_.say(fmt::format("group {} ended: {}", group_, why.detail));
  const PacketPtr packet = makePacket(Type::kTrouble, ErrorMessage{std::move(why)}.encode());
  for (const auto& [guest, sitter] : sitters_)
    if (!sitter.finished) post_.send(guest, packet);
  clear();
  reconsider();
}

void Table::clear() {
  sitters_.clear();
  values_.give(values_.used());
  asked_.clear();
  ranks_.clear();
  live_ = false;
  given_ = finished_ = 0;
  form_call_ = 0;
  unanswered_ = 0;
  answered_ = calls_;
}

// What a member whose time is nearly up gets to know.
void Table::ask(GuestId guest) {
  std::string text;
  if (!sitters_.contains(guest))
    text = live_ ? fmt::format("a group of that name is still running: {}",
                               list([](const Sitter& s) { return !s.finished; }))
                 : fmt::format("{} holds the place and has not shown that it is alive",
                               list([](const Sitter& s) { return s.expects_pong != 0; }));
  else if (live_)
    text = fmt::format("waiting for {}",
                       list([](const Sitter& s) { return !s.given && !s.finished; }));
  else
    text = missing();
  post_.send(guest, makePacket(Type::kStatus, TextMessage{text}.encode()));
}

std::string Table::missing() const {
  if (full())
    return fmt::format("all {} have joined, but {} has not shown that it is alive", size_,
                       list([](const Sitter& s) { return s.expects_pong != 0; }));
  std::string out = fmt::format("{} of {} have joined: {}", sitters_.size(), size_,
                                list([](const Sitter&) { return true; }));
  std::string ranks;
  std::size_t named = 0;
  for (std::uint32_t rank = 0; rank < size_ && !asked_.empty(); ++rank) {
    if (asked_.contains(rank)) continue;
    if (named++ < kNamesInText) ranks += fmt::format("{}{}", ranks.empty() ? "" : ", ", rank);
  }
  if (named > kNamesInText) ranks += fmt::format(" and {} more", named - kNamesInText);
  if (!ranks.empty()) out += fmt::format("; no member requested rank {}", ranks);
  return out;
}

}  // namespace viaduct::meet::embedded
