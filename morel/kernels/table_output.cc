// Output of the kernel table.
#include <complex>
#include <iostream>
#include <sstream>
#include <utility>

#include "morel/kernels/copy.h"
#include "morel/kernels/output.h"
#include "morel/kernels/table.h"

namespace morel {
namespace {

void write_elements(std::ostream& out, const KernelCall& call, size_t idx) {
  const Tensor tensor = call.tensor(idx);
  out << describe(tensor.dtype(), tensor.shape()) << " [";
  const Tensor numbers = call.contiguous(idx, is_complex(tensor.dtype()) ? DType::Complex128 : DType::Float64);
  for (int64_t i = 0; i < numbers.size(); ++i) {
    out << (i ? ", " : "");
    if (numbers.dtype() == DType::Float64) out << numbers.as<double>()[i];
    else out << numbers.as<std::complex<double>>()[i];
  }
  out << ']';
}

void write(std::ostream& out, const std::string& format, std::span<const Value> tensors) {
  size_t next = 0;
  for (size_t i = 0; i < format.size(); ++i) {
    const bool is_doubled = format.compare(i, 2, "{{") == 0 || format.compare(i, 2, "}}") == 0;
    if (format[i] == '{' && !is_doubled) {
      write_elements(out, {tensors, {}}, next++);
      i = format.find('}', i);
    } else {
      out << format[i];
      i += is_doubled;
    }
  }
}

Output output = {
    .print =
        [](const std::string& format, std::span<const Value> tensors) {
          write(std::cout, format, tensors);
          std::cout.flush();
        },
    .raise =
        [](const std::string& kind, const std::string& format, std::span<const Value> tensors) {
          std::ostringstream text;
          write(text, format, tensors);
          raise(ErrorKind::Runtime, kind, ": ", text.str());
        },
};

std::span<const Value> tensors_in(const KernelCall& call) {
  const Value::List& tensors = call.args[0].list();
  return {tensors.data(), tensors.size()};
}

// args: tensors, format.
void print_(const KernelCall& call) { output.print(call.str(1), tensors_in(call)); }

// args: tensors, format, kind.
void raise_(const KernelCall& call) { output.raise(call.str(2), call.str(1), tensors_in(call)); }

}  // namespace

Output set_output(Output other) { return std::exchange(output, other); }

std::span<const KernelEntry> output_kernels() {
  static constexpr KernelEntry entries[] = {{"print_", print_}, {"raise_", raise_}};
  return selected<entries>;
}

}  // namespace morel
