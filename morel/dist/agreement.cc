#include "morel/dist/agreement.h"

#include <algorithm>

#include "morel/base/error.h"
#include "morel/dist/world.h"

namespace morel::dist {
namespace {

constexpr size_t largest_rank = 16;
// As it is sent, always of one length: the call, the dtype, the detail, the number of axes (-1: parcels), then the
// axes, or what is sent and expected.
using Header = std::vector<int64_t>;
constexpr size_t before_sizes = 4;

// A number for each name of a call; no two of those that there are meet.
int64_t number_of(std::string_view call) {
  int64_t out = 0;
  for (const char letter : call) out = out * 31 + letter;
  return out;
}

Header header(std::string_view call, DType dtype, int64_t detail, int64_t axes) {
  Header out(before_sizes + std::max(largest_rank, 2 * static_cast<size_t>(world().size())), 0);
  out[0] = number_of(call);
  out[1] = static_cast<int64_t>(dtype);
  out[2] = detail;
  out[3] = axes;
  return out;
}

size_t place_of(const std::vector<int>& ranks, int rank) {
  const auto found = std::find(ranks.begin(), ranks.end(), rank);
  MOREL_CHECK(found != ranks.end(), Value, "this process is not in the group");
  return static_cast<size_t>(found - ranks.begin());
}

// A header to each of `ranks`, and what they send.
std::vector<Header> exchanged(std::vector<Header> own, const std::vector<int>& ranks) {
  std::vector<Header> theirs(ranks.size(), Header(own.front().size()));
  std::vector<Message> sends, receives;
  for (size_t i = 0; i < ranks.size(); ++i) {
    Header& mine = own[std::min(i, own.size() - 1)];
    sends.push_back({ranks[i], mine.data(), mine.size() * sizeof(int64_t)});
    receives.push_back({ranks[i], theirs[i].data(), mine.size() * sizeof(int64_t)});
  }
  world().exchange(sends, receives);
  return theirs;
}
// The headers of all, in the order of the group.
std::vector<Header> gathered(Header own, std::vector<int> ranks) {
  const auto place = static_cast<int64_t>(place_of(ranks, world().rank()));
  ranks.erase(ranks.begin() + place);
  std::vector<Header> all = exchanged({own}, ranks);
  all.insert(all.begin() + place, std::move(own));
  return all;
}

std::string described(const Header& header) {
  const DType dtype = static_cast<DType>(header[1]);
  if (header[3] < 0) return cat("pieces of ", info(dtype).name);
  Shape shape(header.begin() + before_sizes, header.begin() + before_sizes + header[3]);
  return cat(describe(dtype, shape), header[2] ? cat(" (", header[2], ")") : "");
}

[[noreturn]] void disagree(std::string_view call, const std::vector<Header>& all, const std::vector<int>& ranks) {
  std::string text;
  for (size_t i = 0; i < all.size(); ++i) {
    const bool is_other = all[i][0] != number_of(call);
    text += cat(i ? ", " : "", "rank ", ranks[i], ": ", is_other ? "another call, of " : "", described(all[i]));
  }
  raise(ErrorKind::Value, "For '", call, "', the processes of the group do not call the same: ", text);
}

}  // namespace

void check_processes() {
  MOREL_CHECK(world().local_ranks().size() == 1, Value,
              "in a simulated world every process is this one: use distributed tensors, not collectives");
}

void agree(std::string_view call, const Tensor& tensor, int64_t detail, const std::vector<int>& ranks) {
  check_processes();
  place_of(ranks, world().rank());
  if (ranks.size() < 2) return;
  Header own = header(call, tensor.dtype(), detail, tensor.rank());
  std::copy(tensor.shape().begin(), tensor.shape().end(), own.begin() + before_sizes);
  const std::vector<Header> all = gathered(std::move(own), ranks);
  if (!std::ranges::all_of(all, [&](const Header& one) { return one == all[0]; })) disagree(call, all, ranks);
}

void agree(std::string_view call, const Parcels& parcels, const std::vector<int>& ranks) {
  check_processes();
  place_of(ranks, world().rank());
  const size_t count = ranks.size();
  if (count < 2) return;
  Header own = header(call, parcels.dtype, 0, -1);
  std::copy(parcels.sent.begin(), parcels.sent.end(), own.begin() + before_sizes);
  std::copy(parcels.expected.begin(), parcels.expected.end(), own.begin() + before_sizes + static_cast<int64_t>(count));
  const std::vector<Header> all = gathered(std::move(own), ranks);
  for (const Header& one : all)
    if (!std::equal(one.begin(), one.begin() + before_sizes, all[0].begin())) disagree(call, all, ranks);
  for (size_t from = 0; from < count; ++from)
    for (size_t to = 0; to < count; ++to) {
      const int64_t sent = all[from][before_sizes + to], expected = all[to][before_sizes + count + from];
      MOREL_CHECK(sent == expected, Value, "For '", call, "', rank ", ranks[from], " sends ", sent,
                  " elements to rank ", ranks[to], ", which expects ", expected);
    }
}

void agree_in_pairs(std::string_view call, const Parcels& parcels, const std::vector<int>& ranks) {
  check_processes();
  std::vector<int> others;
  std::vector<Header> own;
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i] == world().rank() || (parcels.sent[i] == 0 && parcels.expected[i] == 0)) continue;
    others.push_back(ranks[i]);
    own.push_back(header("pairs", parcels.dtype, 0, -1));
    own.back()[before_sizes] = parcels.sent[i];
    own.back()[before_sizes + 1] = parcels.expected[i];
  }
  if (others.empty()) return;
  const std::vector<Header> theirs = exchanged(own, others);
  for (size_t i = 0; i < others.size(); ++i) {
    Header wanted = own[i];
    std::swap(wanted[before_sizes], wanted[before_sizes + 1]);
    if (theirs[i] == wanted) continue;
    const bool is_pair = theirs[i][0] == wanted[0];
    const auto told = [&](const Header& one) {
      return cat("sends ", one[before_sizes], " and expects ", one[before_sizes + 1], " elements of ",
                 info(static_cast<DType>(one[1])).name);
    };
    raise(ErrorKind::Value, "For '", call, "', rank ", world().rank(), " ", told(own[i]), ", but rank ", others[i], " ",
          is_pair ? told(theirs[i]) : "makes another call");
  }
}

}  // namespace morel::dist
