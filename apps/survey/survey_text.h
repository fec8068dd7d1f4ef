// Formats of a survey of data: a table for people, JSON for programs. Any thread.
#pragma once

#include <string>

#include "apps/survey/data_survey.h"

namespace wisp {

/// One column per split. If there are many classes, those with most targets in the first split.
std::string survey_table(const DataSurvey& survey);
/// The survey as one JSON object, with all classes.
std::string survey_json(const DataSurvey& survey);

}  // namespace wisp
