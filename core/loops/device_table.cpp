#include "core/loops/device_table.h"

#include "core/loops/parallel.h"

namespace wisp {
namespace {

struct WriteWords {
  uint64_t* to;
  TableWriter::Batch batch;
  WISP_HD void operator()(int64_t i) const { to[i] = batch.word[i]; }
};

}  // namespace

void TableWriter::finish() {
  if (words_ == 0) return;
  parallel_for(stream_, words_, WriteWords{to_, batch_});
  to_ += words_;
  words_ = 0;
}

}  // namespace wisp
