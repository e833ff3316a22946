// C++ errors as Python exceptions, and the place in the user's script.
#include <cstring>

#include "morel/python/bind/bind.h"
#include "morel/tensor/symbolic.h"

namespace morel::bind {
namespace {

PyObject* exception_class(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::Value: return PyExc_ValueError;
    case ErrorKind::Type: return PyExc_TypeError;
    case ErrorKind::Index: return PyExc_IndexError;
    case ErrorKind::Key: return PyExc_KeyError;
    case ErrorKind::Attribute: return PyExc_AttributeError;
    case ErrorKind::NotImplemented: return PyExc_NotImplementedError;
    case ErrorKind::Os: return PyExc_OSError;
    case ErrorKind::Memory: return PyExc_MemoryError;
    case ErrorKind::Runtime:
    case ErrorKind::Internal: break;
  }
  return PyExc_RuntimeError;
}

// Folder of the package, with a trailing slash: frames below it are not the user's.
const std::string& package_folder() {
  static const std::string folder = [] {
    std::string out;
    PyObject* module = PyImport_ImportModule("morel");
    if (module) {
      if (PyObject* file = PyObject_GetAttrString(module, "__file__")) {
        if (const char* text = PyUnicode_AsUTF8(file)) out = text;
        Py_DECREF(file);
      }
      Py_DECREF(module);
    }
    PyErr_Clear();
    return out.substr(0, out.rfind('/') + 1);
  }();
  return folder;
}

}  // namespace

void set_python_error() {
  try {
    throw;
  } catch (PythonError& error) {
    PyErr_Restore(error.type, error.value, error.traceback);
  } catch (const Error& error) {
    std::string text = error.message();
    const SymbolicSizes* sizes = SymbolicSizes::current();
    if (const std::string legend = sizes ? sizes->legend(text) : ""; !legend.empty())
      text += "\nwith the sizes " + legend;
    PyErr_SetString(exception_class(error.kind()), text.c_str());
  } catch (const nb::python_error& error) {
    nb::python_error copy(error);
    copy.restore();
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_Format(PyExc_RuntimeError, "internal error: %s; please report it", error.what());
  }
}

void throw_python_error() {
  PythonError error;
  PyErr_Fetch(&error.type, &error.value, &error.traceback);
  throw error;
}

std::string user_location() {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  std::string out;
  PyFrameObject* frame = PyEval_GetFrame();
  Py_XINCREF(frame);
  while (frame) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    const char* file = PyUnicode_AsUTF8(code->co_filename);
    const bool inside = file && std::strncmp(file, package_folder().c_str(), package_folder().size()) == 0;
    if (file && !inside && file[0] != '<') out = cat(file, ":", PyFrame_GetLineNumber(frame));
    Py_DECREF(code);
    PyFrameObject* back = out.empty() ? PyFrame_GetBack(frame) : nullptr;
    Py_DECREF(frame);
    frame = back;
  }
  PyErr_Restore(type, value, traceback);
  return out;
}

}  // namespace morel::bind
