// What every use of oneDNN needs: it is built on OpenMP, whose threads must not start inside our tasks.
#pragma once

#include <omp.h>

namespace morel {

// OpenMP regions that this thread opens run on it alone, while this lives. Restores the program's own setting.
class SerialOpenMp {
 public:
  SerialOpenMp() : before_(omp_get_max_threads()) {
    if (before_ != 1) omp_set_num_threads(1);
  }
  ~SerialOpenMp() {
    if (before_ != 1) omp_set_num_threads(before_);
  }
  SerialOpenMp(const SerialOpenMp&) = delete;
  SerialOpenMp& operator=(const SerialOpenMp&) = delete;

 private:
  int before_;
};

}  // namespace morel
