// A survey of data, written for people and for programs.
#pragma once

#include <string>

#include "apps/survey/data_survey.h"

namespace wisp {

/// A column for each split. Of many classes those with most targets in the first split.
std::string survey_table(const DataSurvey& survey);
/// The same as one JSON object, with all classes.
std::string survey_json(const DataSurvey& survey);

}  // namespace wisp
