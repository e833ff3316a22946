#include "morel/runtime/opencl/device.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "morel/codegen/c/scalar.h"
#include "morel/runtime/opencl/support.h"

namespace morel::opencl {
namespace {

constexpr size_t group = codegen::opencl_group;

std::vector<cl_device_id> find_devices() {
  const Api& cl = api();
  cl_uint count = 0;
  if (cl.clGetPlatformIDs(0, nullptr, &count) != CL_SUCCESS || count == 0) return {};
  std::vector<cl_platform_id> platforms(count);
  check(cl.clGetPlatformIDs(count, platforms.data(), nullptr), "clGetPlatformIDs");
  std::vector<cl_device_id> out;
  for (cl_platform_id platform : platforms) {
    if (cl.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count) != CL_SUCCESS || count == 0) continue;
    const size_t first = out.size();
    out.resize(first + count);
    check(cl.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, out.data() + first, nullptr), "clGetDeviceIDs");
  }
  return out;
}

// All devices of all platforms, in the order of the drivers.
const std::vector<cl_device_id>& all_devices() {
  static const std::vector<cl_device_id> found = find_devices();
  return found;
}

std::string text_fact(cl_device_id id, cl_device_info fact) {
  size_t bytes = 0;
  check(api().clGetDeviceInfo(id, fact, 0, nullptr, &bytes), "clGetDeviceInfo");
  std::string out(bytes, '\0');
  check(api().clGetDeviceInfo(id, fact, bytes, out.data(), nullptr), "clGetDeviceInfo");
  while (!out.empty() && out.back() == '\0') out.pop_back();
  return out;
}

template <class T>
T fact_of(cl_device_id id, cl_device_info fact) {
  T out{};
  check(api().clGetDeviceInfo(id, fact, sizeof out, &out, nullptr), "clGetDeviceInfo");
  return out;
}

// Sizes in eighths of a power of two, so that buffers can be used again.
size_t rounded(size_t bytes) {
  const size_t step = std::max<size_t>(256, std::bit_floor(std::max<size_t>(bytes, 1)) / 8);
  return std::max<size_t>(step, (bytes + step - 1) / step * step);
}

cl_mem buffer_of(const Storage& storage) { return static_cast<cl_mem>(storage.handle()); }

// The iteration space as a kernel takes it: axes that every operand walks through evenly are one.
struct Space {
  Shape sizes;                   // outer axes, then the inner one
  std::vector<Strides> strides;  // for each operand
  int64_t rows = 1;              // reduced axis of a Columns program
  std::vector<int64_t> row_strides;
};

Space space_of(const DeviceLoop& loop, const loops::Program& program, codegen::OpenClShape shape) {
  const size_t count = loop.operands.size(), rank = loop.space.size();
  const bool columns = program.kind == loops::ProgramKind::Columns;
  const bool any_order = !columns && shape == codegen::OpenClShape::Element;
  const size_t kept = any_order ? 0 : columns ? 2 : 1;
  MOREL_ASSERT(rank >= kept);
  std::vector<size_t> order;
  for (size_t axis = 0; axis + kept < rank; ++axis)
    if (loop.space[axis] != 1) order.push_back(axis);
  if (any_order) {
    const Strides& target = loop.operands.back().strides;
    std::ranges::stable_sort(order, [&](size_t a, size_t b) { return std::abs(target[a]) > std::abs(target[b]); });
  }
  Space out;
  out.strides.resize(count);
  out.row_strides.assign(count, 0);
  for (const size_t axis : order) {
    bool merge = !out.sizes.empty();
    for (size_t i = 0; i < count && merge; ++i)
      merge = out.strides[i].back() == loop.operands[i].strides[axis] * loop.space[axis];
    if (merge) out.sizes.back() *= loop.space[axis];
    else out.sizes.push_back(loop.space[axis]);
    for (size_t i = 0; i < count; ++i) {
      if (merge) out.strides[i].pop_back();
      out.strides[i].push_back(loop.operands[i].strides[axis]);
    }
  }
  if (columns) {
    out.rows = loop.space[rank - 2];
    for (size_t i = 0; i < count; ++i) out.row_strides[i] = loop.operands[i].strides[rank - 2];
  }
  if (kept == 0 && !out.sizes.empty()) return out;
  out.sizes.push_back(kept == 0 ? Dim(1) : loop.space[rank - 1]);
  for (size_t i = 0; i < count; ++i) out.strides[i].push_back(kept == 0 ? Dim(0) : loop.operands[i].strides[rank - 1]);
  return out;
}

// The struct that codegen/opencl/emit.h describes, field by field.
std::vector<int64_t> argument_of(const DeviceLoop& loop, const Space& space, int64_t count) {
  const size_t axes = space.sizes.size() - 1;
  std::vector<int64_t> out = {count, space.sizes.back(), space.rows};
  const auto put_outer = [&](const auto& values) {
    for (size_t k = 0; k < axes; ++k) out.push_back(values[k]);
    if (axes == 0) out.push_back(0);
  };
  put_outer(space.sizes);
  for (const DeviceOperand& operand : loop.operands) out.push_back(operand.offset);
  for (const Strides& strides : space.strides) out.push_back(strides.back());
  out.insert(out.end(), space.row_strides.begin(), space.row_strides.end());
  for (const Strides& strides : space.strides) put_outer(strides);
  for (const double param : loop.params) out.push_back(std::bit_cast<int64_t>(param));
  if (loop.params.empty()) out.push_back(0);
  return out;
}

bool has_complex(const loops::Program& program) {
  return std::ranges::any_of(program.buffers, [](const loops::Buffer& buffer) { return is_complex(buffer.dtype); });
}

std::string symbol_of(const std::string& name, size_t axes) {
  std::string out = "morel_" + name + "_" + std::to_string(axes);
  for (char& c : out)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return out;
}

// What the source of a table kernel sees beside its elements' type. A tensor comes as a buffer and the offset of its
// elements; PEEL takes the last coordinate off a position `rest`.
constexpr std::string_view kernel_text = R"C(
#define KERNEL __kernel __attribute__((reqd_work_group_size(MOREL_LANES, 1, 1))) void
#define TENSOR(type, name) __global type *name, const int64_t name##_at
#define PEEL(name, size) const int64_t name = rest % (size); rest /= (size);
)C";

std::string element_text(DType dtype) {
  const std::string name(info(dtype).short_name), storage = codegen::c_storage_type(dtype);
  std::string out(kernel_text);
  if (is_half(dtype)) {
    out += "typedef uint16_t T;\ntypedef float A;\n#define LOAD(place) morel_from_" + name +
           "(*(place))\n#define STORE(place, value) (*(place) = morel_to_" + name + "(value))\n";
  } else {
    out += "typedef " + storage + " T;\ntypedef " + storage +
           " A;\n#define LOAD(place) (*(place))\n#define STORE(place, value) (*(place) = (value))\n";
  }
  return out + (is_float(dtype) ? "#define MULTIPLY_ADD(x, y, sum) fma(x, y, sum)\n"
                                : "#define MULTIPLY_ADD(x, y, sum) ((x) * (y) + (sum))\n");
}

}  // namespace

int device_count() {
  try {
    return static_cast<int>(all_devices().size());
  } catch (const Error&) {
    return 0;
  }
}

std::unique_ptr<DeviceRuntime> open_device(Device device) {
  const std::vector<cl_device_id>& devices = all_devices();
  MOREL_CHECK(
      !devices.empty(), Runtime,
      "OpenCL finds no device on this system; install a driver, such as Debian's pocl-opencl-icd for processors");
  MOREL_CHECK(static_cast<size_t>(device.index) < devices.size(), Value, "there is no device ", to_string(device),
              ": this system has ", devices.size(), " of OpenCL");
  return std::make_unique<OpenClDevice>(device, devices[static_cast<size_t>(device.index)]);
}

OpenClDevice::OpenClDevice(Device device, cl_device_id id) : device_(device), id_(id) {
  MOREL_CHECK(text_fact(id, CL_DEVICE_EXTENSIONS).find("cl_khr_fp64") != std::string::npos, NotImplemented, "device ",
              to_string(device), " (", text_fact(id, CL_DEVICE_NAME),
              ") has no float64, which is needed; devices with cl_khr_fp64 are supported");
  cl_int status = CL_SUCCESS;
  context_ = api().clCreateContext(nullptr, 1, &id_, nullptr, nullptr, &status);
  check(status, "clCreateContext");
  queue_ = api().clCreateCommandQueue(context_, id_, 0, &status);
  check(status, "clCreateCommandQueue");
  options_ = "-cl-std=CL1.2";
  if (fact_of<cl_device_fp_config>(id, CL_DEVICE_SINGLE_FP_CONFIG) & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT)
    options_ += " -cl-fp32-correctly-rounded-divide-sqrt";
  max_argument_bytes_ = fact_of<size_t>(id, CL_DEVICE_MAX_PARAMETER_SIZE);
}

std::string OpenClDevice::description() const {
  return text_fact(id_, CL_DEVICE_NAME) + ", " + text_fact(id_, CL_DEVICE_VERSION);
}

// -- memory --

Ref<Storage> OpenClDevice::allocate(size_t bytes) {
  const size_t size = rounded(bytes);
  cl_mem buffer = nullptr;
  {
    const std::lock_guard lock(memory_mutex_);
    std::vector<cl_mem>& kept = free_[size];
    if (!kept.empty()) {
      buffer = kept.back();
      kept.pop_back();
    }
  }
  if (!buffer) {
    cl_int status = CL_SUCCESS;
    buffer = api().clCreateBuffer(context_, CL_MEM_READ_WRITE, size, nullptr, &status);
    if (status != CL_SUCCESS) {  // once more without what is kept
      const std::lock_guard lock(memory_mutex_);
      for (auto& [bytes_of_each, buffers] : free_)
        for (cl_mem kept : buffers) api().clReleaseMemObject(kept);
      free_.clear();
      buffer = api().clCreateBuffer(context_, CL_MEM_READ_WRITE, size, nullptr, &status);
    }
    check(status, "clCreateBuffer");
  }
  const auto release = [](void* data, size_t used, void* context) {
    static_cast<OpenClDevice*>(context)->give_back(static_cast<cl_mem>(data), rounded(used));
  };
  return make_ref<Storage>(buffer, bytes, device_, release, this);
}

void OpenClDevice::give_back(cl_mem buffer, size_t bytes) {
  const std::lock_guard lock(memory_mutex_);
  free_[bytes].push_back(buffer);
}

void OpenClDevice::read(const Storage& from, size_t offset, size_t bytes, void* to) {
  check(api().clEnqueueReadBuffer(queue_, buffer_of(from), CL_TRUE, offset, bytes, to, 0, nullptr, nullptr),
        "clEnqueueReadBuffer");
}

void OpenClDevice::write(const Storage& to, size_t offset, size_t bytes, const void* from) {
  check(api().clEnqueueWriteBuffer(queue_, buffer_of(to), CL_TRUE, offset, bytes, from, 0, nullptr, nullptr),
        "clEnqueueWriteBuffer");
}

// -- kernels --

cl_kernel OpenClDevice::compile(const std::string& source, const char* name) {
  const char* text = source.c_str();
  cl_int status = CL_SUCCESS;
  cl_program program = api().clCreateProgramWithSource(context_, 1, &text, nullptr, &status);
  check(status, "clCreateProgramWithSource");
  if (api().clBuildProgram(program, 1, &id_, options_.c_str(), nullptr, nullptr) != CL_SUCCESS) {
    size_t bytes = 0;
    api().clGetProgramBuildInfo(program, id_, CL_PROGRAM_BUILD_LOG, 0, nullptr, &bytes);
    std::string log(bytes, '\0');
    api().clGetProgramBuildInfo(program, id_, CL_PROGRAM_BUILD_LOG, bytes, log.data(), nullptr);
    raise(ErrorKind::Internal, "internal error: OpenCL kernel ", name, " does not compile: ", log.c_str());
  }
  cl_kernel kernel = api().clCreateKernel(program, name, &status);
  check(status, "clCreateKernel");
  return kernel;
}

void OpenClDevice::enqueue(cl_kernel kernel, int64_t groups) {
  const size_t global = static_cast<size_t>(groups) * group, local = group;
  check(api().clEnqueueNDRangeKernel(queue_, kernel, 1, nullptr, &global, &local, 0, nullptr, nullptr),
        "clEnqueueNDRangeKernel");
}

void OpenClDevice::set_bytes(cl_kernel kernel, cl_uint idx, const void* data, size_t bytes) {
  check(api().clSetKernelArg(kernel, idx, bytes, data), "clSetKernelArg");
}

void OpenClDevice::set_argument(cl_kernel kernel, cl_uint& idx, const Tensor& tensor) {
  const cl_mem buffer = tensor ? buffer_of(*tensor->storage) : nullptr;
  const int64_t offset = tensor ? static_cast<int64_t>(tensor->layout.offset) : 0;
  set_bytes(kernel, idx++, &buffer, sizeof buffer);
  set_bytes(kernel, idx++, &offset, sizeof offset);
}

OpenClDevice::Loop& OpenClDevice::loop_of(const DeviceLoop& loop) {
  if (const auto found = loops_.find(loop.name); found != loops_.end()) return found->second;
  loops::Program program = loop.make();
  MOREL_CHECK(!has_complex(program), NotImplemented, "complex numbers are not supported on ", to_string(device_),
              " (loop ", loop.name, "); move the tensors with .to(\"CPU\")");
  const codegen::OpenClShape shape = codegen::opencl_shape(program);
  return loops_.emplace(loop.name, Loop{std::move(program), shape, {}}).first->second;
}

void OpenClDevice::run(const DeviceLoop& loop) {
  const std::lock_guard lock(mutex_);
  Loop& known = loop_of(loop);
  const Space space = space_of(loop, known.program, known.shape);
  const size_t axes = space.sizes.size() - 1;
  int64_t count = 1;
  for (size_t k = 0; k < axes; ++k) count *= space.sizes[k];
  const bool grouped = known.shape == codegen::OpenClShape::Group;
  if (!grouped) count *= space.sizes.back();
  if (count == 0) return;
  const std::vector<int64_t> argument = argument_of(loop, space, count);
  const size_t bytes = argument.size() * sizeof(int64_t);
  MOREL_CHECK(bytes <= max_argument_bytes_, NotImplemented, "loop ", loop.name, " over ", axes + 1, " axes needs ",
              bytes, " bytes of arguments, but ", to_string(device_), " takes ", max_argument_bytes_,
              "; make its operands contiguous");
  cl_kernel& kernel = known.kernels[axes];
  if (!kernel) {
    const std::string symbol = symbol_of(loop.name, axes);
    kernel = compile(codegen::opencl_prelude() + codegen::opencl_kernel(known.program, symbol, axes), symbol.c_str());
  }
  cl_uint idx = 0;
  for (const DeviceOperand& operand : loop.operands) {
    const cl_mem buffer = buffer_of(*operand.storage);
    set_bytes(kernel, idx++, &buffer, sizeof buffer);
  }
  set_bytes(kernel, idx, argument.data(), bytes);
  enqueue(kernel, grouped ? count : (count + static_cast<int64_t>(group) - 1) / static_cast<int64_t>(group));
}

cl_kernel OpenClDevice::kernel(const char* source, DType dtype, const char* name) {
  const std::lock_guard lock(mutex_);
  cl_kernel& slot = kernels_[{source, dtype, name}];
  if (!slot) slot = compile(codegen::opencl_prelude() + element_text(dtype) + source, name);
  return slot;
}

KernelFn OpenClDevice::find_kernel(std::string_view name) const { return opencl::find_kernel(name); }

OpenClDevice& active_device() { return static_cast<OpenClDevice&>(device_runtime(current_device())); }

}  // namespace morel::opencl
