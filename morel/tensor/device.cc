#include "morel/tensor/device.h"

#include <array>
#include <cctype>
#include <charconv>

namespace morel {
namespace {

constexpr std::array<std::string_view, num_device_kinds> kind_names = {"CPU", "OpenCL"};
constexpr size_t max_devices = 16;  // of one kind

std::atomic<DeviceMemory*>& slot_of(Device device) {
  static std::array<std::array<std::atomic<DeviceMemory*>, max_devices>, num_device_kinds> memories;
  return memories[static_cast<size_t>(device.kind)][static_cast<size_t>(device.index)];
}

bool same_ignoring_case(std::string_view x, std::string_view y) {
  return std::equal(x.begin(), x.end(), y.begin(), y.end(),
                    [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); });
}

}  // namespace

std::string to_string(Device device) {
  const std::string name(kind_names[static_cast<size_t>(device.kind)]);
  return device.is_cpu() ? name : cat(name, ":", static_cast<int>(device.index));
}

Device parse_device(std::string_view name) {
  const size_t colon = name.find(':');
  const std::string_view kind = name.substr(0, colon);
  int index = 0;
  bool valid = true;
  if (colon != std::string_view::npos) {
    const char* end = name.data() + name.size();
    const auto [stop, error] = std::from_chars(name.data() + colon + 1, end, index);
    valid = error == std::errc() && stop == end && index >= 0 && index < static_cast<int>(max_devices);
  }
  for (size_t i = 0; valid && i < kind_names.size(); ++i)
    if (same_ignoring_case(kind, kind_names[i])) return {static_cast<DeviceKind>(i), static_cast<int8_t>(index)};
  raise(ErrorKind::Value, "there is no device '", name,
        "'; the devices are CPU and OpenCL (OpenCL:1 is the second one)");
}

DeviceMemory& device_memory(Device device) {
  DeviceMemory* memory = slot_of(device).load(std::memory_order_acquire);
  MOREL_CHECK(memory, Runtime, "device ", to_string(device), " has not been opened");
  return *memory;
}

void add_device(Device device, DeviceMemory& memory) {
  slot_of(device).store(&memory, std::memory_order_release);
  detail::any_device.store(true, std::memory_order_relaxed);
}

}  // namespace morel
