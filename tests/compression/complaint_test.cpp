#include "compression/complaint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "core/loops/parallel.h"

namespace wisp {
namespace {

auto parts(const Complaint& complaint) {
  return std::tuple(complaint.from, complaint.field, complaint.what, complaint.number);
}

TEST(Complaint, IsAWord) {
  for (const Complaint& complaint :
       {Complaint{-1, 0, Wrong::count, 0}, Complaint{3, 5, Wrong::order, 70'000},
        Complaint{16'382, 16'383, Wrong::order, INT32_MAX}}) {
    EXPECT_GT(complaint.word(), 0);
    EXPECT_EQ(parts(Complaint::of(complaint.word())), parts(complaint));
  }
  const Complaint beyond{20'000, 20'000, Wrong::end, int64_t{1} << 40};
  EXPECT_EQ(parts(Complaint::of(beyond.word())), parts({16'382, 16'383, Wrong::end, INT32_MAX}));
}

TEST(Complaint, StaysThatIsToldFirst) {
  const std::vector<Complaint> in_order = {
      {0, 1, Wrong::count, 9}, {0, 2, Wrong::count, 0}, {0, 1, Wrong::order, 2},
      {0, 1, Wrong::order, 3}, {1, 0, Wrong::count, 0},
  };
  for (size_t first = 0; first < in_order.size(); ++first) {
    int64_t word = 0;
    for (size_t i = in_order.size(); i-- > first;)
      Complaints{&word, in_order[i].from}.add(in_order[i].what, in_order[i].field,
                                              in_order[i].number);
    EXPECT_EQ(parts(Complaint::of(word)), parts(in_order[first]));
    const int64_t before = word;
    Complaints{&word, 7}.add(Wrong::count, 0, 0);
    EXPECT_EQ(word, before);
  }
}

struct ComplainOf {
  Complaints complaints;
  WISP_HD void operator()(int64_t i) const { complaints.add(Wrong::code, 0, i ^ 12'345); }
};

TEST(Complaint, DoesNotDependOnThreads) {
  int64_t word = 0;
  parallel_for(Stream::immediate(), 1 << 17, ComplainOf{{&word, 2}});
  EXPECT_EQ(complaint_in(word),
            "the payload of rank 2: field 0 has an invalid sequence of codes in chunk 0");
}

TEST(Complaint, IsForWhoAsks) {
  Complaints{}.add(Wrong::count, 0, 0);
  EXPECT_EQ(complaint_in(0), "");
}

}  // namespace
}  // namespace wisp
