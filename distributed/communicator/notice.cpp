#include "distributed/communicator/notice.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/io/checksum.h"

namespace wisp {
namespace {

/// The difference of the slices from a rank to those that the call expects; empty if none.
std::string notice_mismatch(const Call& call, int from, const Notice& notice) {
  const std::vector<int64_t> expected = sizes_of(call.from(from));
  std::vector<int64_t> sent = expected;  // expected sizes, for slices without a named size
  sent.resize(static_cast<size_t>(notice.slices));
  std::copy_n(notice.sizes, std::min(notice.slices, kNamedSizes), sent.begin());
  std::string why = mail_mismatch(call, from, sent);
  if (why.empty() && notice.checksum != crc32c(expected.data(), expected.size() * sizeof(int64_t)))
    why = concat(call.label.str(), " expects other sizes from ", call.label.name(from),
                 " than it sends, in slice ", kNamedSizes, " or later");
  return why;
}

}  // namespace

Notice notice_of(const Call& call, Where place, int peer) {
  std::vector<int64_t> sizes = call.label.reduces() ? sizes_of(call.in) : sizes_of(call.to(peer));
  // NCCL reduces slice by slice and skips empty ones, which may therefore differ by rank.
  if (call.label.reduces()) std::erase(sizes, 0);
  Notice notice;
  notice.label = call.label;
  notice.place = place;
  notice.checksum = crc32c(sizes.data(), sizes.size() * sizeof(int64_t));
  notice.slices = std::ssize(sizes);
  std::copy_n(sizes.begin(), std::min(notice.slices, kNamedSizes), notice.sizes);
  return notice;
}

Mismatch find_mismatch(const Call& call, int own, std::span<const Notice> notices) {
  const Notice& first = notices[0];
  for (int rank = 1; rank < std::ssize(notices); ++rank) {
    const Notice& notice = notices[static_cast<size_t>(rank)];
    if (!notice.label.fits(first.label)) return {rank, label_mismatch(notice.label, first.label)};
  }
  const auto on_device = std::find_if(notices.begin(), notices.end(), [](const Notice& notice) {
    return notice.place == Where::device;
  });
  for (int rank = 0; rank < std::ssize(notices); ++rank) {
    const Notice& notice = notices[static_cast<size_t>(rank)];
    if (on_device != notices.end() && notice.place == Where::host)
      return {rank, concat(notice.label.str(), " in host memory, but ",
                           call.label.name(static_cast<int>(on_device - notices.begin())),
                           " passes device memory")};
    if (call.label.reduces() &&
        (notice.slices != first.slices || notice.checksum != first.checksum))
      return {rank, concat(notice.label.str(), " is cut into other slices than ",
                           call.label.name(0), "'s")};
  }
  for (int from = 0; !call.label.reduces() && from < std::ssize(notices); ++from) {
    if (std::string why = notice_mismatch(call, from, notices[static_cast<size_t>(from)]);
        !why.empty())
      return {own, std::move(why)};
  }
  return {};
}

}  // namespace wisp
