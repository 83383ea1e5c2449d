// One source address and socket number: drives its sockets to all peers. Threads: under the
// agent's lock.
#pragma once

#include <list>
#include <string>
#include <vector>

#include "backends/tcp/data_socket.h"
#include "backends/tcp/job.h"
#include "core/backend.h"

namespace viaduct::tcp {

class TcpRail final : public core::Rail, public JobOwner {
 public:
  TcpRail(std::string name, std::size_t index) : name_(std::move(name)), index_(index) {}

  std::string_view name() const override { return name_; }
  std::size_t index() const { return index_; }
  std::size_t post(const core::Work& work) override;
  void poll(core::Completions& out) override;
  void cancel(core::Tag tag) override;
  bool busy() const override { return !active_.empty() || !reports_.empty(); }
  bool mayHaveEnded() const override { return !reports_.empty(); }

  void report(Job& job) override;

  // The rail turns this socket until it is tired.
  void activate(DataSocket& data_socket);
  void deactivate(DataSocket& data_socket);

  // For sockets that are gone: of a link one, in one of its lives, or all. strand(): their jobs go
  // no further; release(): they end at the next poll(); take(): they end now.
  void strand(const DataSocket& data_socket, std::uint32_t socket, std::uint32_t life,
              const Error& why);
  void strand(const TcpLink& link, const Error& why);
  void release(const TcpLink& link, std::uint32_t socket, std::uint32_t life);
  void release(const TcpLink& link);
  void take(const TcpLink& link, core::Completions& out);
  // Jobs that use this local pin fail.
  void dropSlot(std::uint32_t slot);

 private:
  Job& newJob(const core::Work& work);
  // Reports what there is; the job is gone after its last report.
  void flush(Job& job, core::Completions& out);
  void turnAll();
  DataSocket* firstLost() const;

  std::string name_;
  std::size_t index_;
  std::list<Job> jobs_, spare_;
  std::vector<Job*> reports_;
  std::vector<DataSocket*> active_;
};

}  // namespace viaduct::tcp
