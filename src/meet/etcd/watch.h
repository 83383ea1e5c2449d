// Watches ranges of keys for as long as it lives: over lost connections, a frozen endpoint, expired
// tokens and compaction. Threads: the loop's own.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "meet/etcd/client.h"

namespace viaduct::meet::etcd {

class Watch {
 public:
  struct Handlers {
    // In the order of revisions, within each range. Handlers may destroy the Watch.
    std::function<void(const WatchEvent&)> event;
    // etcd forgot what happened meanwhile: this is all there is now, in all ranges.
    std::function<void(const std::vector<KeyValue>&)> snapshot;
    // The watch has ended for good: etcd refuses it.
    std::function<void(Error)> failed;
  };

  // Events from revision `from` on.
  Watch(CurlLoop& loop, Client& client, std::vector<KeyRange> ranges, Revision from,
        Handlers handlers);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // One more range, with events from `from` on.
  void add(KeyRange range, Revision from);

 private:
  void open();
  void again(Duration pause);
  void backOff();
  void line(std::size_t range, std::string_view text);
  void take(std::size_t range, WatchMessage message);
  void cancelled(const WatchMessage& message);
  void readAll();
  void fail(Error why);

  CurlLoop& loop_;
  Client& client_;
  Handlers handlers_;
  std::vector<KeyRange> ranges_;
  std::vector<Revision> next_;  // per range: what has not been seen yet
  // One per range. etcd's gateway may answer the first request of a stream and lose those that come
  // after it in the same body: what is read of a body after the answer has begun is by chance.
  std::vector<std::unique_ptr<Client::OpenStream>> streams_;
  CurlLoop::Id timer_ = 0, moved_ = 0;
  Duration pause_;
  int denied_ = 0;  // in a row
  // Gone with the Watch: what comes late, or after a handler destroyed us, looks here first.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace viaduct::meet::etcd
