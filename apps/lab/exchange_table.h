// An exchange plan, written for people and for programs.
#pragma once

#include <string>

#include "apps/setup/exchange_plan.h"

namespace wisp {

/// A line for each layer, each phase and each remark.
std::string exchange_table(const ExchangePlan& plan, int workers);
/// The same as one JSON object; numbers as in ExchangePlan.
std::string exchange_json(const ExchangePlan& plan, int workers);

}  // namespace wisp
