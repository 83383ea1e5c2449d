// Untimed transfers between the timed ones. Each carries fresh words, and the receiving end looks
// for them. So a backend that skips transfers is caught, although the timed transfers repeat the
// same blocks. Threads: one.
#pragma once

#include <viaduct/agent.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <string>

#include "measure/proof/lane.h"
#include "measure/workload/stream_contents.h"

namespace viaduct::measure {

// A backend that skips one transfer in ten is caught in 999 rows of 1,000 by 66 checks, since
// 0.9^66 is less than 0.001. A few more are a margin.
constexpr std::uint64_t kSpotChecks = 72;

// One process's share of the spot checks between two rounds of a row. All processes take the row's
// streams in the same order, so that both ends of a stream check it at the same time.
class SpotChecks {
 public:
  // `ended` returns true to stop waiting for the other end. While `hurried` returns true, each
  // stream gets only one check.
  using Ended = std::function<bool()>;
  // `epoch` is the epoch of all contents except the checked words.
  SpotChecks(Agent& agent, const NoteSource& notes, const StreamContents& contents,
             std::uint64_t epoch, Ended ended, Ended hurried)
      : agent_(agent),
        notes_(notes),
        contents_(contents),
        epoch_(epoch),
        ended_(std::move(ended)),
        hurried_(std::move(hurried)) {}

  // Checks a stream at its initiating end. Check i has the epoch `first_epoch` + i.
  Status lead(Lane& lane, const StreamEnd& own, const Peer& far, std::uint64_t count,
              std::uint64_t first_epoch);
  // The same for a stream whose other end is storage of this process. What the storage holds stays
  // as it is during a row of reads: such a check clears the words that the transfer has to bring.
  // `load` reads the set of the storage into `stored`.
  Status leadStored(Lane& lane, const StreamEnd& own, const StreamEnd& stored, std::uint64_t count,
                    std::uint64_t first_epoch,
                    const std::function<Status(std::uint64_t set)>& load);
  // Answers the checks of a stream at its other end, until lead() there says that it is over.
  Status follow(const StreamEnd& own);

  std::uint64_t led() const { return led_; }  // checks of streams that this end initiates
  std::uint64_t missed() const { return missed_; }
  const std::string& wrong() const { return wrong_; }  // the wrong words of the first failed check

 private:
  enum class CheckVerb : std::uint8_t { kFreshen, kVerify, kOver };
  struct CheckMessage {
    bool answer = false;
    CheckVerb verb = CheckVerb::kOver;
    SpotCheck check = {};
    std::string wrong = {};  // the result of kVerify
    std::string from = {};   // the agent that sent the message
  };
  using OneCheck = std::function<Result<std::string>(const SpotCheck& check)>;
  // Makes the checks, and counts them. `one` returns the wrong words.
  Status checkEach(Lane& lane, std::uint32_t stream, std::uint64_t count, std::uint64_t first_epoch,
                   const OneCheck& one);
  Result<std::string> checkOne(Lane& lane, const StreamEnd& own, const Peer& far,
                               const SpotCheck& check);
  Status passOthers(Lane& lane, std::uint64_t among, std::uint64_t seed);
  Result<std::string> ask(const Peer& far, CheckVerb verb, const SpotCheck& check);
  Status send(const Peer& to, const CheckMessage& message);
  Result<CheckMessage> receive(std::uint32_t stream, bool answer);
  Result<CheckMessage> decode(const Note& note) const;
  bool isSource(const StreamEnd& own) const { return contents_.source(own.stream) == own.role; }

  Agent& agent_;
  const NoteSource& notes_;
  const StreamContents& contents_;
  const std::uint64_t epoch_;
  const Ended ended_, hurried_;
  std::deque<CheckMessage> early_;  // messages about streams that this end has not reached yet
  std::uint64_t led_ = 0, missed_ = 0;
  std::string wrong_;
};

}  // namespace viaduct::measure
