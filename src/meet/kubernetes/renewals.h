// Renews the Leases of this process in turn, each at its own time, in one thread for all of them.
// Threads: any; one of its own once there is a Lease.
#pragma once

#include <viaduct/deadline.h>
#include <viaduct/result.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

namespace viaduct::meet::kubernetes {

class Renewable {
 public:
  // Renews the Lease once, and returns the time of the next renewal.
  virtual Clock::time_point renew() = 0;

 protected:
  ~Renewable() = default;
};

class Renewals {
 public:
  Renewals() = default;
  ~Renewals();
  Renewals(const Renewals&) = delete;
  Renewals& operator=(const Renewals&) = delete;

  // Fails if no thread can be started.
  Status add(Renewable& one, Clock::time_point when);
  void hurry(const Renewable& one);  // renews it now
  // Stops the renewals of `one`. Waits for the end of a renewal that is going on.
  void remove(const Renewable& one);

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::multimap<Clock::time_point, Renewable*> due_;
  const Renewable* current_ = nullptr;  // in renew(), and not in `due_`
  bool removed_ = false;                // the current one has been removed meanwhile
  bool hurried_ = false;                // the current one is to be renewed again at once
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace viaduct::meet::kubernetes
