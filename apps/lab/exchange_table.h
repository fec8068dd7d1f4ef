// Formats of an exchange plan: a table for people, JSON for programs. Any thread.
#pragma once

#include <string>

#include "apps/setup/exchange_plan.h"

namespace wisp {

/// One line per layer, phase and remark.
std::string exchange_table(const ExchangePlan& plan, int workers);
/// The plan as one JSON object; numbers as in ExchangePlan.
std::string exchange_json(const ExchangePlan& plan, int workers);

}  // namespace wisp
