// A member of a group as a separate process, for tests that stop and kill it.
//   etcd_member WHERE GROUP SIZE RANK|- NAME SECONDS [DETECT_MS]
// Prints "waiting TEXT" while it joins, "whole RANK EPOCH HASH" or "error TEXT", then answers each
// line: gather VALUE, trouble [MS], finish, leave.
#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <iostream>
#include <string>
#include <thread>

#include "meet/place.h"
#include "support/roster_hash.h"

namespace {

using namespace viaduct;
using namespace viaduct::meet;
using viaduct::testing::hashOf;

const StopFlag kGoOn{false};

template <class T>
T number(const std::string& text) {
  T out = 0;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

std::string gather(Group& group, const std::string& value, Duration time) {
  const auto values = group.gather(value, time, kGoOn);
  if (!values) return "error " + values.error().text();
  std::string out = "values";
  for (const std::string& one : *values) out += " " + one;
  return out;
}

std::string trouble(const Group& group, Duration time) {
  const auto end = Clock::now() + time;
  while (Clock::now() < end) {
    if (const auto why = group.trouble()) return "trouble " + why->text();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return "none";
}

void say(const std::string& line) { std::cout << line << std::endl; }

int serve(std::unique_ptr<Group> group, Duration time) {
  for (std::string line; std::getline(std::cin, line);) {
    if (line.starts_with("gather ")) {
      say(gather(*group, line.substr(7), time));
    } else if (line == "trouble") {
      say(trouble(*group, time));
    } else if (line.starts_with("trouble ")) {
      say(trouble(*group, std::chrono::milliseconds(number<int>(line.substr(8)))));
    } else if (line == "finish") {
      const Status done = group->finish(time);
      say(done ? "finished" : "error " + done.error().text());
    } else if (line == "leave") {
      group.reset();
      say("left");
      return 0;
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv, argv + argc);
  if (argc < 7) return 2;
  bool joining = true;
  PlaceOptions options{
      .where = words[1], .token = "secret", .waiting = [&joining](const std::string& line) {
        if (joining) say("waiting " + line);
      }};
  if (argc > 7) options.detect = std::chrono::milliseconds(number<int>(words[7]));
  auto place = openGroupPlace(options);
  if (!place) return say("error " + place.error().text()), 1;
  JoinRequest request{.group = words[2], .size = number<std::uint32_t>(words[3]), .name = words[5]};
  if (words[4] != "-") request.rank = number<std::uint32_t>(words[4]);
  const Duration time = std::chrono::seconds(number<int>(words[6]));
  auto group = (*place)->join(request, time, kGoOn);
  if (!group) return say("error " + group.error().text()), 1;
  joining = false;
  const Roster& roster = (*group)->roster();
  say(fmt::format("whole {} {} {:016x}", roster.rank, roster.epoch, hashOf(roster)));
  return serve(std::move(*group), time);
}
