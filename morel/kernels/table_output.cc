// Output of the kernel table.
#include <complex>
#include <iostream>
#include <utility>

#include "morel/kernels/copy.h"
#include "morel/kernels/print.h"
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

void print_to_output(const std::string& format, std::span<const Value> tensors) {
  size_t next = 0;
  for (size_t i = 0; i < format.size(); ++i) {
    const bool is_doubled = format.compare(i, 2, "{{") == 0 || format.compare(i, 2, "}}") == 0;
    if (format[i] == '{' && !is_doubled) {
      write_elements(std::cout, {tensors, {}}, next++);
      i = format.find('}', i);
    } else {
      std::cout << format[i];
      i += is_doubled;
    }
  }
  std::cout.flush();
}

Printer printer = print_to_output;

// args: tensors, format.
void print_(const KernelCall& call) {
  const Value::List& tensors = call.args[0].list();
  printer(call.str(1), {tensors.data(), tensors.size()});
}

}  // namespace

Printer set_printer(Printer other) { return std::exchange(printer, other); }

std::span<const KernelEntry> output_kernels() {
  static constexpr auto entries = kernel_list({{"print_", print_}});
  return entries;
}

}  // namespace morel
