#include "backends/cuda/copier.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "backends/cuda/facts.h"
#include "backends/cuda/host_memory.h"
#include "cuda/driver_thread.h"

namespace viaduct::cuda {
namespace {

// The driver copies unregistered host memory within the call, about 5 bytes in a nanosecond.
constexpr std::uint64_t kMostPageable = std::uint64_t{1} << 20U;
constexpr std::size_t kFewestForKernel = 4;  // below it, single calls cost less than a launch
constexpr std::size_t kFirstCopies =
    512;  // the most copies of a job's first batch; each further batch has room for twice as many

using RegistrationState = PinnedMemory::RegistrationState;

Error denied(std::string detail) {
  return {.code = Code::kDenied,
          .operation = "transfer",
          .detail = std::move(detail),
          .device = "cuda"};
}

std::uint64_t mostRegistered(const Settings& settings) {
  if (const AutoSize wanted = kRegister.of(settings)) return *wanted;
  return static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
         static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) / 2;
}

// Checks that the memory at the address is still the one that was pinned.
Status checkAlive(CopyBatch::Use& use, std::uint64_t address, std::uint64_t bytes) {
  if (use.sure.covers(address, bytes)) return Ok{};
  const PinnedMemory& pin = *use.pin;
  const DeviceBuffer& buffer = *pin.buffer;
  const std::uint64_t end = address + bytes;
  const auto& ranges = buffer.facts.ranges;
  auto range = std::ranges::upper_bound(ranges, address, {}, &MemoryRange::base);
  for (--range; range != ranges.end() && range->base < end; ++range) {
    VIADUCT_CHECK(cuda::checkAlive(*buffer.context, *range));
    const std::uint64_t start = std::max(range->base, pin.address);
    use.sure = {start, std::min(range->base + range->bytes, pin.address + pin.bytes) - start};
  }
  return Ok{};
}

// At least one side is memory of a GPU.
Direction directionBetween(const PinnedMemory& from, const PinnedMemory& to) {
  if (from.isDevice() && to.isDevice()) return Direction::kWithin;
  return from.isDevice() ? Direction::kOut : Direction::kIn;
}

// Returns the batch's entry for the pin. The batch enters each pin once. Null: the pin is
// withdrawn.
CopyBatch::Use* enter(CopyBatch& batch, const std::shared_ptr<PinnedMemory>& memory) {
  for (CopyBatch::Use& use : batch.uses)
    if (use.pin == memory) return &use;
  if (!memory->enter()) return nullptr;
  batch.uses.push_back({memory});
  CopyBatch::Use& use = batch.uses.back();
  // Nobody can free host memory that is pinned, and a mapping keeps a peer's memory alive.
  if (!memory->isDevice() || memory->borrowed.mapping) use.sure = {memory->address, memory->bytes};
  return &use;
}

// The bytes from `at` on that one call may copy. The registration of a neighbour in the same page
// may cover the first or the last page of unregistered memory, and the driver refuses a copy of
// which only a part is registered.
std::uint64_t upToEdge(const PinnedMemory& memory, std::uint64_t at, std::uint64_t bytes) {
  if (memory.isDevice() || memory.registration != RegistrationState::kRefused) return bytes;
  static const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  for (const std::uint64_t edge :
       {(memory.address + page - 1) / page * page, (memory.address + memory.bytes) / page * page})
    if (at < edge) bytes = std::min(bytes, edge - at);
  return bytes;
}

// Whether no batch uses a withdrawn pin, and the driver does not know its memory any more.
bool isFree(const std::shared_ptr<PinnedMemory>& memory) {
  return !memory->inUse() && (memory->isDevice() || unregisterHost(memory));
}

// The distance from an address of the pin to the one that kernels use.
std::uint64_t kernelShift(const PinnedMemory& memory) {
  return memory.isDevice() ? memory.borrowed.shift : memory.registered->deviceShift();
}

// The error of a release that has waited for its grace, after what `why` says.
Error notReleased(Error why, bool used_here) {
  why.code = Code::kPeerLost;
  why.cause = used_here ? "the GPU hangs, or is busy with long kernels"
                        : "the peer is stopped, or its GPU hangs";
  why.remedy = used_here ? "keep the memory until settled() of Agent::self() is true"
                         : "keep the memory until the peer has died or its settled() is true";
  return why;
}

}  // namespace

bool kernelsMayReach(OpenGpu& gpu, const DeviceBuffer& buffer) {
  if (buffer.context->ordinal() == gpu.context()->ordinal()) return true;
  const bool opened =
      buffer.facts.memory_class == MemoryClass::kLegacy || buffer.allocation != nullptr;
  return opened && gpu.canReach(*buffer.context);
}

OpenGpus::OpenGpus(const Settings& settings, std::shared_ptr<EndBell> bell)
    : library_(kLibrary.of(settings)),
      kernel_below_(kKernelBelow.of(settings)),
      bell_(std::move(bell)) {}

Result<std::shared_ptr<OpenGpu>> OpenGpus::open(std::uint32_t ordinal) {
  if (auto known = find(ordinal)) return known;
  const std::lock_guard one_at_a_time(opening_);
  if (auto known = find(ordinal)) return known;
  VIADUCT_TRY(const Driver* driver, cuda::driver(library_));
  VIADUCT_TRY(auto gpu, OpenGpu::open(*driver, ordinal, kernel_below_, bell_));
  const std::lock_guard lock(mutex_);
  gpus_.push_back(gpu);
  return gpu;
}

std::shared_ptr<OpenGpu> OpenGpus::find(std::uint32_t ordinal) const {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find_if(
      gpus_, [&](const auto& gpu) { return gpu->context()->ordinal() == ordinal; });
  return found == gpus_.end() ? nullptr : *found;
}

std::vector<std::shared_ptr<OpenGpu>> OpenGpus::all() const {
  const std::lock_guard lock(mutex_);
  return gpus_;
}

Copier::Copier(const Settings& settings, std::shared_ptr<OpenGpus> gpus,
               std::shared_ptr<EndBell> bell)
    : gpus_(std::move(gpus)),
      bell_(std::move(bell)),
      poll_for_(kPollFor.of(settings)),
      grace_(settings.grace),
      register_most_(mostRegistered(settings)),
      jobs_(move::JobTable::Traits{.device = "cuda", .most = kMostJobs, .grace = settings.grace}) {}

void Copier::pin(std::uint32_t slot, std::shared_ptr<PinnedMemory> memory) {
  const std::lock_guard lock(mutex_);
  if (slot >= slots_.size()) slots_.resize(slot + 1);
  slots_[slot] = {.pin = {std::move(memory), ++births_}};
}

PinnedMemory* Copier::find(std::uint32_t slot) const {
  const std::lock_guard lock(mutex_);
  if (slot >= slots_.size()) return nullptr;
  PinnedMemory* const memory = slots_[slot].pin.memory.get();
  return memory == nullptr || memory->withdrawn() ? nullptr : memory;
}

Status Copier::unpin(std::uint32_t slot, const LentTo& lent_to) {
  const std::lock_guard lock(mutex_);
  if (slot >= slots_.size() || !slots_[slot].pin.memory) return Ok{};
  PinSlot& place = slots_[slot];
  const std::shared_ptr<PinnedMemory> memory = place.pin.memory;
  if (!place.leaving) {
    place.leaving = Clock::now();
    memory->withdraw();
    retract(*memory);
    jobs_.dropSlot(slot);
  }
  collect();
  const bool used_here = !isFree(memory);
  // A registration may end while this function looks, and then a later call finds the pin free.
  const bool registers =
      memory->registration == RegistrationState::kPending || (used_here && !memory->inUse());
  const std::string peers = lent_to(*memory);
  const bool stuck = used_here || !peers.empty();
  const Error why{.code = Code::kBusy,
                  .operation = "unpin",
                  .detail = registers   ? "the driver still has the memory registered"
                            : used_here ? "a GPU is still copying"
                                        : "a peer still maps the memory",
                  .peer = peers,
                  .device = "cuda"};
  const bool ends_soon = registers && !registrarHangs();
  if (stuck && (ends_soon || Clock::now() < *place.leaving + grace_)) return why;
  place = {};
  if (!stuck) return Ok{};
  if (used_here) stuck_pins_.push_back(memory);
  return notReleased(why, used_here);
}

std::size_t Copier::post(const core::Work& work, const CopierPins& remote) {
  const std::lock_guard lock(mutex_);
  if (work.ops.empty() || jobs_.full()) return 0;
  GpuJob& job = jobs_.add<GpuJob>(work, this);
  job.remote = &remote;
  job.born = births_;
  ready_.push(job);
  progress();
  return work.ops.size();
}

void Copier::poll(core::Completions& out) {
  if (!busy()) return;
  const std::lock_guard lock(mutex_);
  if (bell_->rung()) {
    bell_->clear();
    for (move::Job* job : jobs_.jobs()) static_cast<GpuJob*>(job)->waits = false;
  }
  collect();
  progress();
  if (!jobs_.hasReports()) return;
  jobs_.takeReports(out);
  progress();
}

void Copier::cancel(const core::Sink& sink) {
  const std::lock_guard lock(mutex_);
  jobs_.cancel(sink);
  progress();
}

// Launches batches for which streams have room. Then records whether batches are in flight
// (waits_), and whether the copier needs polls (busy_).
void Copier::progress() {
  launchAll();
  busy_ = waits_ = false;
  const auto before = Clock::now() - poll_for_;
  for (const auto& gpu : used_) {
    const bool idle =
        std::ranges::all_of(gpu->streams(), [](auto& stream) { return stream->idle(); });
    if (idle) continue;
    const auto current = Current::of(*gpu->context());
    for (const auto& stream : gpu->streams()) {
      if (current) stream->ringFor(before);
      busy_ = busy_ || stream->silent();
      waits_ = waits_ || !stream->idle();
    }
  }
  busy_ = busy_ || jobs_.hasReports();
}

// The jobs take turns, so that no job waits for a longer job.
void Copier::launchAll() {
  move::JobQueue stay;
  while (!ready_.empty()) {
    GpuJob& job = static_cast<GpuJob&>(ready_.pop());
    ++job.outstanding;  // it does not end while it fills a batch
    const bool launched = !job.waits && launchOne(job);
    --job.outstanding;
    if (job.hasMore()) (launched ? ready_ : stay).push(job);
    jobs_.settle(job);
  }
  ready_ = stay;
}

// False: the job can launch nothing now.
bool Copier::launchOne(GpuJob& job) {
  Filling filling;
  fill(job, filling);
  CopyBatch* const batch = filling.batch;
  if (batch == nullptr) return false;
  if (batch->empty()) {
    batch->clear();
    return false;
  }
  if (std::ranges::find(used_, filling.gpu) == used_.end()) used_.push_back(filling.gpu);
  batch->job = &job;
  ++job.outstanding;
  ++job.moved.batches;
  Status launched = filling.stream->launch(Clock::now());
  if (!launched) jobs_.stop(job, std::move(launched).error());
  return true;
}

// Adds the job's next ops to a batch, until the batch is full or cannot take the next op.
void Copier::fill(GpuJob& job, Filling& filling) {
  CopyBatch*& batch = filling.batch;
  while (job.hasMore() && (batch == nullptr || !batch->full())) {
    const core::Op& op = job.work.ops[job.next_op];
    if (!filling.isFor(op) && !turnTo(job, op, filling)) break;
    if (addSmall(job, filling.aim, *batch)) continue;
    Status added = add(job, op, filling.aim, *batch);
    if (!added) jobs_.stop(job, std::move(added).error());
    if (batch->bytes >= filling.aim.most_bytes) break;
  }
}

// Prepares the batch for an op whose pins differ from those of the op before. False: this batch
// cannot take the op now.
bool Copier::turnTo(GpuJob& job, const core::Op& op, Filling& filling) {
  Aim aim;
  if (Status aimed = aimAt(job, op, aim); !aimed) {
    jobs_.stop(job, std::move(aimed).error());
    return false;
  }
  if (job.waits) return false;
  CopyStream& stream = aim.gpu->stream(aim.direction);
  if (filling.stream != nullptr && filling.stream != &stream) return false;
  if (filling.stream == nullptr) {
    // The first batch is small, so that the GPU soon has work. Later batches grow.
    const std::size_t copies =
        std::min(job.work.ops.size() - job.next_op,
                 kFirstCopies << std::min<std::uint64_t>(job.moved.batches, 16));
    CopyBatch* const batch = stream.next(copies, op.bytes);
    if (batch == nullptr) return false;
    auto current = Current::of(*aim.gpu->context());
    if (!current) {
      jobs_.stop(job, std::move(current).error());
      return false;
    }
    filling.current.emplace(*std::move(current));
    filling.gpu = aim.gpu;
    filling.stream = &stream;
    filling.batch = batch;
  }
  aim.from_use = enter(*filling.batch, aim.from);
  aim.to_use = enter(*filling.batch, aim.to);
  filling.aim = std::move(aim);
  filling.local_pin = op.local_pin;
  filling.remote_pin = op.remote_pin;
  return true;
}

// Finds the pins of an op. Leaves both empty if the job has to wait for a peer's memory.
Status Copier::findPins(GpuJob& job, const core::Op& op, Aim& out) const {
  const auto usable = [&](const CopierPin& pin) {
    return pin.memory && pin.born <= job.born && !pin.memory->withdrawn();
  };
  const auto remote = job.remote->find(op.remote_pin);
  if (remote != job.remote->end() && !remote->second.memory) {
    const auto& refused = remote->second.refused;
    if (refused) return *refused;
    job.waits = true;
    return Ok{};
  }
  if (op.local_pin >= slots_.size() || !usable(slots_[op.local_pin].pin) ||
      remote == job.remote->end() || !usable(remote->second))
    return denied("the memory was released");
  const bool writes = job.work.kind == OpKind::kWrite;
  out.from = writes ? slots_[op.local_pin].pin.memory : remote->second.memory;
  out.to = writes ? remote->second.memory : slots_[op.local_pin].pin.memory;
  if (!out.to->writable) return denied("the pin is read-only");
  return Ok{};
}

Status Copier::aimAt(GpuJob& job, const core::Op& op, Aim& out) {
  VIADUCT_CHECK(findPins(job, op, out));
  if (!out.from) return Ok{};
  const bool writes = job.work.kind == OpKind::kWrite;
  const PinnedMemory& local = writes ? *out.from : *out.to;
  const PinnedMemory& device = local.isDevice() ? local : writes ? *out.to : *out.from;
  if (!device.isDevice()) return denied("one side has to be memory of a GPU");
  out.gpu = gpus_->find(device.buffer->context->ordinal());
  if (!out.gpu) return denied("the GPU is not open here");
  out.direction = directionBetween(*out.from, *out.to);
  out.most_bytes = mostBytesOfBatch(out.direction);
  if (job.work.ops.size() >= kFewestForKernel)
    out.kernel_below = out.gpu->kernelBelow(out.direction);
  for (const auto& side : {out.from, out.to}) {
    if (!side->isDevice())
      prepareHost(job, side, out);
    else if (!kernelsMayReach(*out.gpu, *side->buffer))
      out.kernel_below = 0;
  }
  if (out.kernel_below == 0) return Ok{};
  const PinUse from(*out.from), to(*out.to);
  if (!from || !to) return denied("the memory was released");
  out.from_shift = kernelShift(*out.from);
  out.to_shift = kernelShift(*out.to);
  return Ok{};
}

// The first copy from or to a pin of host memory starts the registration of that memory. The job
// waits until the registration has ended.
void Copier::prepareHost(GpuJob& job, const std::shared_ptr<PinnedMemory>& host, Aim& aim) const {
  if (host->registration == RegistrationState::kNone)
    registerHost(host, aim.gpu->context(), register_most_);
  const RegistrationState state = host->registration;
  job.waits = state == RegistrationState::kPending;
  if (state != RegistrationState::kDone) aim.kernel_below = 0;
  if (state == RegistrationState::kRefused) aim.most_bytes = kMostPageable;
}

// Adds the next ops between the pins of the aim that are for the kernel and need no further check.
// False: there were none.
bool Copier::addSmall(GpuJob& job, const Aim& aim, CopyBatch& batch) {
  if (aim.from_use == nullptr || aim.to_use == nullptr || job.offset != 0) return false;
  const CopyBatch::SureRange from_sure = aim.from_use->sure, to_sure = aim.to_use->sure;
  const bool writes = job.work.kind == OpKind::kWrite;
  const core::Op* op = &job.work.ops[job.next_op];
  const std::uint32_t local_pin = op->local_pin, remote_pin = op->remote_pin;
  const std::size_t most = std::min(job.work.ops.size() - job.next_op, batch.kernelRoom());
  const std::size_t most_written = batch.most_rows - RowWriter::kMostOfCopy;
  RowWriter rows = batch.rows;  // in registers, for the time of the loop
  std::uint64_t bytes = batch.bytes;
  std::size_t added = 0;
  for (; added < most && bytes < batch.most_bytes && rows.written() <= most_written;
       ++added, ++op) {
    const std::uint64_t from = writes ? op->local : op->remote;
    const std::uint64_t to = writes ? op->remote : op->local;
    const bool same_pins = op->local_pin == local_pin && op->remote_pin == remote_pin;
    if (!same_pins || op->bytes >= aim.kernel_below || op->bytes == 0 ||
        !from_sure.covers(from, op->bytes) || !to_sure.covers(to, op->bytes))
      break;
    rows.add({from + aim.from_shift, to + aim.to_shift, op->bytes});
    bytes += op->bytes;
  }
  batch.rows = rows;
  batch.bytes = bytes;
  batch.kernel_copies += added;
  job.next_op += added;
  return added != 0;
}

// Adds an op, or as much of it as the batch may have.
Status Copier::add(GpuJob& job, const core::Op& op, const Aim& aim, CopyBatch& batch) const {
  const bool writes = job.work.kind == OpKind::kWrite;
  std::uint64_t from = writes ? op.local : op.remote;
  std::uint64_t to = writes ? op.remote : op.local;
  if (aim.from_use == nullptr || aim.to_use == nullptr) return denied("the memory was released");
  if (!aim.from->covers(from, op.bytes) || !aim.to->covers(to, op.bytes))
    return denied(fmt::format("{} bytes are outside their pins", op.bytes));
  from += job.offset;
  to += job.offset;
  const bool by_kernel = op.bytes < aim.kernel_below;
  const std::uint64_t left = op.bytes - job.offset;
  std::uint64_t bytes = left;
  if (!by_kernel) {
    bytes = std::min(bytes, aim.most_bytes - batch.bytes);
    bytes = upToEdge(*aim.to, to, upToEdge(*aim.from, from, bytes));
  }
  if (bytes != 0) {
    VIADUCT_CHECK(checkAlive(*aim.from_use, from, bytes));
    VIADUCT_CHECK(checkAlive(*aim.to_use, to, bytes));
    if (by_kernel) {
      batch.rows.add({from + aim.from_shift, to + aim.to_shift, bytes});
      ++batch.kernel_copies;
    } else {
      batch.engine.push_back({from + aim.from->borrowed.shift, to + aim.to->borrowed.shift, bytes});
    }
    batch.bytes += bytes;
  }
  job.offset += bytes;
  if (job.offset == op.bytes) {
    ++job.next_op;
    job.offset = 0;
  }
  return Ok{};
}

// Takes back the batches that the GPUs have finished.
void Copier::collect() {
  const auto now = Clock::now();
  for (const auto& gpu : used_) {
    for (const auto& stream : gpu->streams()) {
      if (stream->idle()) continue;
      // A context that has failed cannot become current, and its events report the failure.
      const auto current = Current::of(*gpu->context());
      for (auto finished = stream->finished(); finished.batch != nullptr;
           finished = stream->finished()) {
        move::Job& job = *finished.batch->job;
        --job.outstanding;
        job.moved.by_kernel += finished.batch->kernel_copies;
        if (finished.why)
          jobs_.stop(job, *std::move(finished.why));
        else
          job.moved.bytes += finished.batch->bytes;
        stream->release(now);
        jobs_.settle(job);
      }
    }
  }
  std::erase_if(stuck_pins_, isFree);
}

void Copier::progressUntil(Clock::time_point /*until*/) {
  std::this_thread::yield();
  collect();
}

void Copier::close(const core::Link& link, core::Completions& out) {
  const std::lock_guard lock(mutex_);
  jobs_.close(link, *this, out);
  progress();
}

std::function<bool()> Copier::settling(const std::shared_ptr<Copier>& copier) {
  return [copier] {
    const std::lock_guard lock(copier->mutex_);
    copier->collect();
    return copier->jobs_.settled() && copier->stuck_pins_.empty();
  };
}

bool Copier::stop() {
  const std::lock_guard lock(mutex_);
  for (PinSlot& slot : std::exchange(slots_, {}))
    if (slot.pin.memory) {
      slot.pin.memory->withdraw();
      retract(*slot.pin.memory);
      stuck_pins_.push_back(std::move(slot.pin.memory));
    }
  return jobs_.drain(nullptr, *this);
}

bool Copier::unregisters() const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(stuck_pins_, [](const auto& memory) {
    return memory->registration == RegistrationState::kPending;
  });
}

}  // namespace viaduct::cuda
