// Requests a text from all HTTP servers on abstract Unix sockets with a given prefix of their
// names. So processes of a host find each other. Threads: a Survey under its poller owner's lock;
// the functions any.
#pragma once

#include <viaduct/deadline.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/poller.h"

namespace viaduct::base {

// The listening abstract Unix sockets of this network namespace whose names start with `front`.
std::vector<std::string> unixServers(std::string_view front);

struct SurveyOptions {
  std::string path = "/";
  std::chrono::milliseconds time = std::chrono::seconds(1);  // for all answers
  std::size_t most_bytes = std::size_t{1} << 20U;            // of one answer
  std::size_t most_servers = 256;                            // that may be asked
  // Servers of other users are not asked, because any user can take such a name. Root asks them if
  // this is set.
  bool root_asks_all = false;
};

// Collects the bodies of the responses that come in time, in the order of the names.
class Survey {
 public:
  using Done = std::function<void(std::vector<std::string> bodies)>;
  // `done` runs once, from a handler of the poller, unless the Survey is destroyed before. It must
  // not destroy the Survey.
  Survey(Poller& poller, const std::vector<std::string>& names, const SurveyOptions& options,
         Done done);
  ~Survey();
  Survey(const Survey&) = delete;
  Survey& operator=(const Survey&) = delete;

 private:
  struct Question;
  void ask(const std::string& name, const SurveyOptions& options);
  void events(Question& question);
  void end(Question& question);
  void finish();

  Poller& poller_;
  const Done done_;
  const std::size_t most_bytes_;
  std::vector<std::unique_ptr<Question>> questions_;
  std::size_t open_ = 0;
  Poller::Id timer_ = 0;
};

// Runs a survey and waits for it.
std::vector<std::string> surveyNow(const std::vector<std::string>& names,
                                   const SurveyOptions& options);

}  // namespace viaduct::base
