// Formats of numbers for people. Any thread.
#pragma once

#include <string>

namespace wisp {

/// 1078888 -> "1.08 MB".
std::string bytes_text(double bytes);
/// How many times less than dense was sent: "276.7x"; "-" if none are sent.
std::string reduction_text(double times, double sent);
/// 75.25 -> "1:15", 7500 -> "2:05:00", 3.25 -> "3.2 s"; "-" for NaN.
std::string seconds_text(double seconds);

}  // namespace wisp
