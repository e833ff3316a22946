// Checkpoints, safetensors and IDX files. Reading opens a file without touching its tensors; the Python side picks
// those that it wants and gets each as a Tensor of its own.
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>

#include "morel/data/idx.h"
#include "morel/io/ckpt.h"
#include "morel/io/safetensors.h"
#include "morel/python/bind/bind.h"
#include "morel/runtime/device.h"
#include "morel/runtime/tape.h"

namespace morel::bind {
namespace {

const NamedTensor& entry_at(const TensorFile& file, int64_t idx) {
  MOREL_CHECK(idx >= 0 && idx < static_cast<int64_t>(file.entries.size()), Index, "the file has ", file.entries.size(),
              " entries, but entry ", idx, " was asked for");
  return file.entries[static_cast<size_t>(idx)];
}

// (name, dtype, shape) of each entry; dtype is None for text.
nb::list describe_entries(const TensorFile& file) {
  nb::list out;
  for (const NamedTensor& entry : file.entries) {
    nb::object dtype = entry.text ? nb::none() : nb::steal(wrap(entry.dtype));
    out.append(nb::make_tuple(entry.name, dtype, nb::steal(from_value(Ints(entry.shape)))));
  }
  return out;
}

nb::object load_entry(const TensorFile& file, int64_t idx) {
  const NamedTensor& entry = entry_at(file, idx);
  if (entry.text) return nb::cast(*entry.text);
  Tensor tensor = Tensor::empty(entry.shape, entry.dtype);
  {
    const nb::gil_scoped_release others_run;
    entry.copy_to(tensor.data());
  }
  return nb::steal(wrap(tensor));
}

// What is written: the entries, and the tensors that hold their bytes.
struct Contents {
  std::vector<NamedTensor> entries;
  std::vector<Tensor> tensors;
};

Contents contents_of(nb::handle items) {
  Contents out;
  for (const nb::handle item : items) {
    const auto [name, value] = nb::cast<std::pair<std::string, nb::object>>(item);
    NamedTensor& entry = out.entries.emplace_back();
    entry.name = name;
    if (nb::isinstance<nb::str>(value)) {
      entry.text = nb::cast<std::string>(value);
      continue;
    }
    const Tensor tensor = contiguous(to_device(detach(nb::cast<Tensor>(value)), Device{}));
    entry.dtype = tensor.dtype();
    entry.shape = tensor.shape();
    entry.pieces.push_back(
        {tensor.as<const std::byte>(), static_cast<size_t>(tensor.size() * size_of(tensor.dtype()))});
    out.tensors.push_back(tensor);
  }
  return out;
}

}  // namespace

void bind_io(nb::module_& module) {
  nb::class_<TensorFile>(module, "TensorFile")
      .def("__len__", [](const TensorFile& file) { return file.entries.size(); })
      .def("entries", &describe_entries)
      .def("load", &load_entry, nb::arg("idx"), "The tensor (a copy) or the text of an entry.")
      .def_prop_ro("metadata", [](const TensorFile& file) { return file.metadata; });
  module.def(
      "open_ckpt", [](const std::string& path, bool check_crc) { return read_ckpt(path, {.check_crc = check_crc}); },
      nb::arg("path"), nb::arg("check_crc") = false, nb::call_guard<nb::gil_scoped_release>());
  module.def("open_safetensors", &read_safetensors, nb::arg("path"), nb::call_guard<nb::gil_scoped_release>());
  module.def(
      "write_ckpt",
      [](const std::string& path, nb::iterable items, bool crc) {
        const Contents contents = contents_of(items);
        const nb::gil_scoped_release others_run;
        write_ckpt(path, contents.entries, {.crc = crc});
      },
      nb::arg("path"), nb::arg("items"), nb::arg("crc") = false, "`items`: pairs of a name and a Tensor or text.");
  module.def(
      "write_safetensors",
      [](const std::string& path, nb::iterable items, const std::map<std::string, std::string>& metadata) {
        const Contents contents = contents_of(items);
        const nb::gil_scoped_release others_run;
        write_safetensors(path, contents.entries, metadata);
      },
      nb::arg("path"), nb::arg("items"), nb::arg("metadata") = std::map<std::string, std::string>());
  module.def("read_idx", &read_idx, nb::arg("path"), nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace morel::bind
