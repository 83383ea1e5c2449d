// A process at a meeting place that obeys commands, one per line on stdin. It answers each on
// stdout with a line "ok [value]" or "error CODE text", and ends with its stdin.
//   meeting_member PLACE TOKEN NAME DETECT_MS
#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "meet/groups/group.h"
#include "meet/place.h"
#include "process/words.h"
#include "support/roster_hash.h"

namespace {

using namespace viaduct;
using namespace viaduct::meet;
using viaduct::testing::hashOf;
using Answer = Result<std::string>;
using Words = std::vector<std::string>;

const StopFlag kGoOn{false};

struct State {
  std::string name;
  std::unique_ptr<MeetingPlace> place;
  std::unique_ptr<GroupPlace> groups;
  std::unique_ptr<Group> group;
  std::unique_ptr<PublishedName> entry;
};

Deadline within(const std::string& ms) { return std::chrono::milliseconds(std::stoull(ms)); }

// join GROUP SIZE RANK|- MS: answers epoch, rank and hash
Answer join(State& state, const Words& in) {
  JoinRequest request{.group = in.at(1),
                      .size = static_cast<std::uint32_t>(std::stoul(in.at(2))),
                      .name = state.name};
  if (in.at(3) != "-") request.rank = static_cast<std::uint32_t>(std::stoul(in[3]));
  state.group.reset();
  VIADUCT_TRY(state.group, state.groups->join(request, within(in.at(4)), kGoOn));
  const Roster& roster = state.group->roster();
  return fmt::format("{:x} {} {:x}", roster.epoch, roster.rank, hashOf(roster));
}

// gather VALUE|- MS [TIMES]: gathers TIMES times, and answers all values of the last time
Answer gather(State& state, const Words& in) {
  const int times = in.size() > 3 ? std::stoi(in[3]) : 1;
  std::string out;
  for (int i = 0; i < times; ++i) {
    VIADUCT_TRY(const auto all,
                state.group->gather(in.at(1) == "-" ? "" : in[1], within(in.at(2)), kGoOn));
    out = fmt::format("{}", fmt::join(all, " "));
  }
  return out;
}

Answer finish(State& state, const Words& in) {
  VIADUCT_CHECK(state.group->finish(within(in.at(1))));
  state.group.reset();
  return std::string();
}

// publish NAME VALUE MS, find NAME MS
Answer publish(State& state, const Words& in) {
  VIADUCT_TRY(state.entry, state.place->publish(in.at(1), in.at(2), within(in.at(3))));
  return std::string();
}
Answer find(State& state, const Words& in) {
  return state.place->find(in.at(1), within(in.at(2)), kGoOn);
}

Answer obey(State& state, const Words& in) {
  if (in.at(0) == "join") return join(state, in);
  if (in[0] == "publish") return publish(state, in);
  if (in[0] == "find") return find(state, in);
  if (!state.group) return Error{.operation = in[0], .detail = "no group"};
  if (in[0] == "gather") return gather(state, in);
  if (in[0] == "finish") return finish(state, in);
  return Error{.operation = in[0], .detail = "what is that?"};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  State state{.name = argv[3], .place = {}, .groups = {}, .group = {}, .entry = {}};
  const PlaceOptions options{.where = argv[1],
                             .token = argv[2],
                             .detect = std::chrono::milliseconds(std::stoull(argv[4]))};
  auto place = openMeetingPlace(options);
  auto groups = openGroupPlace(options);
  if (!place || !groups) {
    std::cerr << (place ? groups.error() : place.error()).text() << '\n';
    return 1;
  }
  state.place = std::move(*place);
  state.groups = std::move(*groups);
  for (std::string line; std::getline(std::cin, line);) {
    const Answer answer = obey(state, viaduct::testing::words(line));
    if (answer)
      std::cout << "ok " << *answer << std::endl;
    else
      std::cout << "error " << codeName(answer.error().code) << " " << answer.error().text()
                << std::endl;
  }
}
