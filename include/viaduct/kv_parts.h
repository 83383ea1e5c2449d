// Moves the KV cache of one request layer by layer, as the layers become ready: docs/kv.md. A push
// writes them from the source: KvPush there, KvArrival at the destination. A pull reads them at the
// destination: KvOffer at the source, KvPull at the destination. A destructor ends the request at
// both ends unless all layers have been moved. Those of KvPush and KvPull wait until
// their own transfers have ended. Those of KvArrival and KvOffer do not wait: the peer may still
// access the blocks, so call cancel() first. Do not destroy one in a callback. Threads: call from
// any.
#pragma once

#include <viaduct/agent.h>
#include <viaduct/kv.h>
#include <viaduct/result.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace viaduct {

namespace kv {
class LayerStream;
}

// A plan between two layouts for each layer that both have. Made once, for all requests.
class KvLayers {
 public:
  // Fails as KvReshard::plan does.
  static Result<KvLayers> plan(const KvLayout& source, const KvLayout& destination);

  // The numbers of the layers that are moved between these two ranks, ascending.
  const std::vector<std::uint32_t>& layers() const { return layers_; }
  // Selects the pieces for these block tables, as KvReshard::select does: for each of layers().
  Result<std::vector<KvSelections>> select(std::span<const KvBlocks> groups) const;

 private:
  struct One {
    std::vector<std::size_t> groups = {};  // the groups with caches of this layer
    KvReshard plan = {};
  };
  std::size_t groups_ = 0;
  std::vector<std::uint32_t> layers_;
  std::vector<One> plans_;
};

// Names a request at both ends.
struct KvRequest {
  // The number of its stream of marks: one that neither agent has used in this session, for
  // requests or for MarkStreamOptions.
  std::uint64_t stream = 0;
  std::string name = {};     // in errors; empty: the number
  std::string require = {};  // see TransferOptions
};

// The source of a push.
class KvPush {
 public:
  // Plans the transfers of all layers.
  static Result<KvPush> open(Agent& agent, const Peer& destination, const KvLayers& layers,
                             std::span<const KvBlocks> blocks, KvRequest request);
  KvPush(KvPush&&) noexcept;
  KvPush& operator=(KvPush&&) noexcept;
  ~KvPush();  // cancels, if layers have not been written

  // The layer is computed: writes it, and then tells the destination. A second call for a layer
  // fails with kInvalid. If a write fails, the request ends at both ends.
  Status ready(std::uint32_t layer);
  // Waits until the layers that were ready so far have been written. After an error some writes may
  // still run.
  Status wait(Deadline until);
  // Ends the request at both ends, and does not block. The blocks may be used again once the
  // destructor has returned.
  void cancel(std::string_view why);

 private:
  explicit KvPush(std::shared_ptr<kv::LayerStream> impl);
  std::shared_ptr<kv::LayerStream> impl_;
};

// The destination of a push. With several source ranks, it has one for each.
class KvArrival {
 public:
  // `layers` is KvLayers::layers(), the same at both ends.
  static Result<KvArrival> open(Agent& agent, const Peer& source,
                                const std::vector<std::uint32_t>& layers, KvRequest request);
  KvArrival(KvArrival&&) noexcept;
  KvArrival& operator=(KvArrival&&) noexcept;
  ~KvArrival();  // cancels, if layers are missing, and does not wait for the source

  // Wait until the layer, that many layers, or all have arrived. A layer that has arrived stays
  // so. If the request has ended without it, they return the reason. Each error names the layer
  // and the request.
  Status waitLayer(std::uint32_t layer, Deadline until) const;
  Status waitCount(std::uint32_t count, Deadline until) const;
  Status waitAll(Deadline until) const;
  bool has(std::uint32_t layer) const;
  std::uint32_t count() const;
  // Ends the request at both ends, and waits until the source writes no more. After kTimeout it may
  // still write: call again. After the loss of the peer it may still write until Peer::settled() is
  // true.
  Status cancel(std::string_view why, Deadline until);

 private:
  explicit KvArrival(std::shared_ptr<kv::LayerStream> impl);
  std::shared_ptr<kv::LayerStream> impl_;
};

// The source of a pull.
class KvOffer {
 public:
  static Result<KvOffer> open(Agent& agent, const Peer& destination,
                              const std::vector<std::uint32_t>& layers, KvRequest request);
  KvOffer(KvOffer&&) noexcept;
  KvOffer& operator=(KvOffer&&) noexcept;
  ~KvOffer();  // cancels, if layers have not been read, and does not wait for the destination

  // The layer is computed: tells the destination. A second call for a layer has no effect.
  Status ready(std::uint32_t layer);
  // Waits until the destination has read all layers, so that their blocks are free.
  Status waitRead(Deadline until) const;
  // Ends the request at both ends, and waits until the destination reads no more, with the limits
  // of KvArrival::cancel().
  Status cancel(std::string_view why, Deadline until);

 private:
  explicit KvOffer(std::shared_ptr<kv::LayerStream> impl);
  std::shared_ptr<kv::LayerStream> impl_;
};

// The destination of a pull.
class KvPull {
 public:
  // Plans the transfers of all layers. A layer is read when the source says that it is ready.
  static Result<KvPull> open(Agent& agent, const Peer& source, const KvLayers& layers,
                             std::span<const KvBlocks> blocks, KvRequest request);
  KvPull(KvPull&&) noexcept;
  KvPull& operator=(KvPull&&) noexcept;
  ~KvPull();  // cancels, if layers have not been read

  // Reads all layers now. The caller knows that the source has computed them.
  Status readAll();
  // Wait until the layer, or all layers, have been read.
  Status waitLayer(std::uint32_t layer, Deadline until);
  Status waitAll(Deadline until);
  // Ends the request at both ends, and does not block. The blocks here may be used again once the
  // destructor has returned.
  void cancel(std::string_view why);

 private:
  explicit KvPull(std::shared_ptr<kv::LayerStream> impl);
  std::shared_ptr<kv::LayerStream> impl_;
};

}  // namespace viaduct
