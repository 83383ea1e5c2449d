#include <pybind11/stl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>

#include "bindings.h"
#include "doorbell.h"
#include "errors.h"
#include "gil.h"

namespace viaduct::python {

Result<std::shared_ptr<Doorbell>> Doorbell::open() {
  base::Fd fd(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!fd) return systemError(Code::kExhausted, "eventfd", errno);
  return std::shared_ptr<Doorbell>(new Doorbell(std::move(fd)));
}

void Doorbell::ring(std::uint64_t wait) {
  const std::lock_guard held(mutex_);
  rung_.push_back(wait);
  if (rung_.size() != 1) return;
  const std::uint64_t one = 1;
  // The write cannot block while the count of the eventfd is below 2^64 - 2.
  [[maybe_unused]] const auto written = ::write(fd_.get(), &one, sizeof one);
}

std::vector<std::uint64_t> Doorbell::take() {
  const std::lock_guard held(mutex_);
  std::uint64_t rings = 0;
  [[maybe_unused]] const auto read = ::read(fd_.get(), &rings, sizeof rings);
  return std::exchange(rung_, {});
}

void bindDoorbell(py::module_& module) {
  py::class_<LoopWait, std::shared_ptr<LoopWait>>(module, "_LoopWait");
  py::class_<Doorbell, std::shared_ptr<Doorbell>>(module, "_Doorbell")
      .def(py::init([] { return valueOf(Doorbell::open()); }))
      .def("fileno", &Doorbell::fd)
      .def("wait", [](const std::shared_ptr<Doorbell>& bell,
                      std::uint64_t number) { return std::make_shared<LoopWait>(bell, number); })
      .def("take", &Doorbell::take);
}

}  // namespace viaduct::python
