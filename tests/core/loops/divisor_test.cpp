#include "core/loops/divisor.h"

#include <gtest/gtest.h>

#include <random>

namespace wisp {
namespace {

constexpr int64_t kLast = (int64_t{1} << 31) - 1;  // largest dividend without a division

void expect_quotient(const Divisor& divisor, int64_t n) {
  ASSERT_EQ(divisor.quotient(n), n / divisor.value()) << n << " / " << divisor.value();
  ASSERT_EQ(divisor.remainder(n), n % divisor.value()) << n << " % " << divisor.value();
}

/// Tries dividends around multiples of the divisor, where a quotient off by one would show.
void expect_quotients(int64_t d, std::mt19937_64& random) {
  const Divisor divisor(d);
  const auto around = [&](int64_t n) {
    for (int64_t m = std::max<int64_t>(0, n - 2); m <= n + 2; ++m) expect_quotient(divisor, m);
  };
  around(0);
  around(d);
  around(kLast);
  around(kLast / d * d);
  around(int64_t{1} << 32);
  around((int64_t{1} << 40) / d * d);
  for (int i = 0; i < 50; ++i) around(static_cast<int64_t>(random() % (kLast / d + 1)) * d);
}

TEST(Divisor, DividesAsDivisionDoes) {
  std::mt19937_64 random(1);
  for (int64_t d = 1; d <= 3000; ++d) expect_quotients(d, random);
  for (int bits = 0; bits < 40; ++bits)
    for (const int64_t d : {(int64_t{1} << bits) - 1, int64_t{1} << bits, (int64_t{1} << bits) + 1})
      if (d > 0) expect_quotients(d, random);
  for (int i = 0; i < 3000; ++i)
    expect_quotients(1 + static_cast<int64_t>(random() % kLast), random);
}

}  // namespace
}  // namespace wisp
