// Methods of the agent's class that Python calls by its vectorcall protocol. pybind11 converts and
// copies the arguments of each call into a list on the heap, which costs more than some calls of
// NIXL do (docs/measured/python.md). Threads: call with the GIL.
#pragma once

#include <fmt/format.h>
#include <pybind11/pybind11.h>

#include <algorithm>
#include <array>
#include <cstddef>

namespace viaduct::nixl {

namespace py = pybind11;

// The name of a method, and of its parameters, of which the first `needed` have no default.
template <std::size_t N>
struct Method {
  const char* name;
  std::array<const char*, N> parameters;
  std::size_t needed;
};
// Borrowed references, in the order of the parameters. Null: the caller left the argument out.
template <std::size_t N>
using Arguments = std::array<PyObject*, N>;

template <std::size_t N>
Arguments<N> argumentsOf(const Method<N>& method, PyObject* const* given, Py_ssize_t positional,
                         PyObject* names) {
  Arguments<N> all{};
  const auto count = static_cast<std::size_t>(PyVectorcall_NARGS(positional));
  if (count > N)
    throw py::type_error(fmt::format("{}() takes at most {} arguments", method.name, N));
  std::copy(given, given + count, all.begin());
  const py::ssize_t named = names == nullptr ? 0 : PyTuple_GET_SIZE(names);
  for (py::ssize_t i = 0; i < named; ++i) {
    PyObject* const name = PyTuple_GET_ITEM(names, i);
    std::size_t at = 0;
    while (at < N && PyUnicode_CompareWithASCIIString(name, method.parameters[at]) != 0) ++at;
    if (at == N || all[at] != nullptr)
      throw py::type_error(fmt::format("{}() got the argument {} {}", method.name,
                                       py::repr(name).template cast<std::string>(),
                                       at == N ? "that it does not take" : "twice"));
    all[at] = given[count + static_cast<std::size_t>(i)];
  }
  for (std::size_t at = 0; at < method.needed; ++at)
    if (all[at] == nullptr)
      throw py::type_error(
          fmt::format("{}() lacks the argument '{}'", method.name, method.parameters[at]));
  return all;
}

// The C++ object of an instance of T's Python class, or of a class that derives from it.
template <class T>
T& objectOf(PyObject* self) {
  const auto* const instance = reinterpret_cast<const py::detail::instance*>(self);
  if (!instance->simple_layout) return py::handle(self).cast<T&>();
  if (instance->simple_value_holder[0] == nullptr)
    throw py::type_error("the object was not initialised; call __init__() of its class");
  return *static_cast<T*>(instance->simple_value_holder[0]);
}

// Sets Python's exception for the C++ exception that is being handled, as pybind11 does.
void setException();

template <const auto& kMethod, auto kCall>
struct Vectorcall;
template <const auto& kMethod, class T, std::size_t N,
          py::object (*kCall)(T& self, const Arguments<N>& given)>
struct Vectorcall<kMethod, kCall> {
  static PyObject* run(PyObject* self, PyObject* const* given, Py_ssize_t count, PyObject* names) {
    try {
      return kCall(objectOf<T>(self), argumentsOf(kMethod, given, count, names)).release().ptr();
    } catch (...) {
      setException();
      return nullptr;
    }
  }
};

// Adds the method to the class.
template <const auto& kMethod, auto kCall>
void bindVectorcall(py::handle type) {
  const auto run = &Vectorcall<kMethod, kCall>::run;
  static PyMethodDef definition{kMethod.name,
                                reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(run)),
                                METH_FASTCALL | METH_KEYWORDS, nullptr};
  const auto method = py::reinterpret_steal<py::object>(
      PyDescr_NewMethod(reinterpret_cast<PyTypeObject*>(type.ptr()), &definition));
  if (!method) throw py::error_already_set();
  py::setattr(type, kMethod.name, method);
}

}  // namespace viaduct::nixl
