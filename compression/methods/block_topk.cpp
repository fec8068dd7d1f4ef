// Block-top-k: fields are cut into blocks of S consecutive elements. The blocks with the largest
// norm are sent whole; the rest stays in the residual. With a = e + g (without feedback a = g):
//   score_b = sum of |a_i| over block b          (compression.score = "l2": of a_i^2)
//   shared:  score_b <- sum over workers         (an all_reduce before)
//   send a_i of the k blocks of largest score;  e <- a without them
//   shared:  all ranks send the same blocks: values are summed on the way, without ids
//   own:     each rank sends its own blocks: u32 ids and values are gathered
// k = kept_count(ratio, blocks). Equal scores are taken in cyclic order from a drawn block. The
// score of a short last block is also a sum. A field shorter than S is one block of its own size. A
// unit's payload: with own, u32 ids[Σ k], fields in order, each ascending; then S values per block,
// zeros behind the end of a short last block. Bytes: value · Σ k S, and 4 · Σ k for ids; agreement:
// 4 · Σ blocks. Source: Sun et al. 2019 (arXiv 1902.06855), chunks with all-reduced L1 norms, as
// described in the notes of DGC's authors. Ours: block size, L2, and the own variant. Shared scores
// cost 4 / S bytes an element, ids 1 / S of f32 values. S = 256 keeps the scores at 1/256 of dense,
// and still gives the layers of a small network several blocks to choose from.
#include "compression/cursor.h"
#include "compression/methods/methods.h"
#include "compression/ratio_schedule.h"
#include "compression/slices.h"
#include "compression/sparse/select.h"
#include "compression/unit_rows.h"
#include "core/loops/parallel_rows.h"
#include "core/loops/parallel_small_teams.h"

namespace wisp {
namespace {

/// The blocks of consecutive elements of a field, across its slices.
struct Blocks {
  int64_t size = 0;  // elements of a block; a shorter field is one block
  int64_t count = 0;
  int64_t kept = 0;

  Blocks(const Field& field, int64_t block_size, double ratio)
      : size(std::min(block_size, field.numel)),
        count((field.numel + size - 1) / size),
        kept(kept_count(ratio, count)) {}
};

/// The part of a field's blocks that lies in one slice.
struct BlockPart {
  int64_t size;        // elements of a block
  int64_t begin, end;  // field positions of the slice
  int64_t shift;       // arena index - field position

  /// Field positions [from(block), to(block)) of a block in the slice; empty unless to is larger.
  WISP_HD int64_t from(int64_t block) const { return block * size < begin ? begin : block * size; }
  WISP_HD int64_t to(int64_t block) const {
    return (block + 1) * size > end ? end : (block + 1) * size;
  }
};

/// The scores of each field's blocks, for select_of_arrays(). Equal scores are ordered at random,
/// equally on all ranks. Valid while `spec` and `info` are.
auto scores_of(const UnitSpec& spec, const StepInfo& info, int64_t block_size) {
  return [&spec, &info, block_size](int64_t f) {
    const Field& field = spec.fields[static_cast<size_t>(f)];
    const Blocks blocks(field, block_size, info.ratio);
    return SelectArray{blocks.count, blocks.kept, info.random(field)};
  };
}

/// score[b] = sum of |a| or a^2 over block b of a field; a is read once per element, with take() if
/// kTake, else with peek(). Adds up the parts of a block in several slices.
template <bool kTake>
struct ScoreBlocks {
  struct Shared {};
  Source source;
  UnitRows rows;
  int64_t field, size;
  float* score;
  bool squares;
  template <class Team>
  WISP_HD void operator()(const Team& team, int64_t block, Shared&) const {
    const UnitRows::OfField of = rows.field[field];
    int64_t at = block * size;
    const int64_t end = at + size < of.numel ? at + size : of.numel;
    float total = 0.0f;
    for (int64_t s = rows.slice_of(of, at); at < end; ++s) {
      const int64_t here = rows.end_of(of, s);
      const int64_t to = end < here ? end : here;
      total += sum(team, at + rows.slice[s].shift, to + rows.slice[s].shift);
      at = to;
    }
    team.once([&] { score[block] = total; });
  }

 private:
  struct Add {
    WISP_HD static float combine(float a, float b) { return a + b; }
  };
  WISP_HD float term(int64_t i) const {
    const float a = kTake ? source.take(i) : source.peek(i);
    return squares ? a * a : float_from_bits(magnitude_bits(a));
  }
  template <class Team>
  WISP_HD float sum(const Team& team, int64_t at, int64_t end) const {
    typename Team::template PerLane<float> lane;
    for (; at + parallel::kLanes <= end; at += parallel::kLanes)
      team.lanes([&](int64_t j) { lane[j] += term(at + j); });
    team.each(end - at, [&](int64_t j) { lane[j] += term(at + j); });
    return team.fold(lane, Add());
  }
};

/// A part of a field in one slice, with the field's kept blocks; an item is kBlocks of them.
struct PartRow {
  static constexpr int64_t kBlocks = 32;
  int64_t first_item;
  BlockPart part;
  int64_t field;                // index of the field in the unit
  int64_t numel, blocks, kept;  // elements, blocks and kept blocks of the field
  int64_t id, value;            // index of its first id and its first value

  /// visit(i) for each kept block of an item.
  template <class Visit>
  WISP_HD void each(const Team& team, int64_t item, const Visit& visit) const {
    const int64_t first = (item - first_item) * kBlocks;
    const int64_t left = kept - first;
    team.each(left < kBlocks ? left : kBlocks, [&](int64_t i) { visit(first + i); });
  }
};

template <class Value>
struct SendBlocks {
  struct Shared {};
  Source source;
  float most;
  const uint32_t* all_ids;
  Value* all_values;
  RowTable<PartRow> table = {};
  WISP_HD void operator()(const Team& team, int64_t item, Shared&) const {
    const PartRow& row = table.row_of(item);
    const BlockPart part = row.part;
    const int64_t numel = row.numel;
    const uint32_t* ids = all_ids + row.id;
    Value* values = all_values + row.value;
    row.each(team, item, [&](int64_t i) {
      const int64_t block = ids[i];
      const int64_t shift = (i - block) * part.size;  // index of a value - its field position
      const int64_t to = part.to(block);
      for (int64_t at = part.from(block); at < to; ++at) {
        const Value value = to_wire<Value>(within(most, source.held(at + part.shift)));
        values[at + shift] = value;
        source.sent(at + part.shift, static_cast<float>(value));
      }
      if (part.end < numel) return;
      for (int64_t at = numel; at < (block + 1) * part.size; ++at) values[at + shift] = Value(0.0f);
    });
  }
};

/// Adds blocks with ascending ids. Other ids cause a complaint.
template <class Value>
struct AddBlocks {
  struct Shared {};
  const uint32_t* all_ids;
  const Value* all_values;
  float weight;
  float* into;
  Complaints complaints;
  RowTable<PartRow> table = {};
  WISP_HD void operator()(const Team& team, int64_t item, Shared&) const {
    const PartRow& row = table.row_of(item);
    const BlockPart part = row.part;
    const int64_t blocks = row.blocks, field = row.field;
    const uint32_t* ids = all_ids + row.id;
    const Value* values = all_values + row.value;
    row.each(team, item, [&](int64_t i) {
      const int64_t block = ids[i];
      if (block >= blocks) return complaints.add(Wrong::position, field, i);
      if (i > 0 && ids[i - 1] >= block) return complaints.add(Wrong::order, field, i);
      const int64_t shift = (i - block) * part.size;
      const int64_t to = part.to(block);
      for (int64_t at = part.from(block); at < to; ++at)
        into[at + part.shift] += weight * static_cast<float>(values[at + shift]);
    });
  }
};

class BlockTopk final : public Code {
 public:
  explicit BlockTopk(const BlockTopkOptions& options) : options_(options) {}

  Traits traits() const override { return {.sparse = true}; }
  std::optional<double> least_share(const Field& field) const override {
    if (!options_.squares) return {};  // the largest sum of |a| may have a small sum of a²
    const Blocks blocks(field, options_.block_size, options_.least_ratio);
    return static_cast<double>(blocks.kept) / static_cast<double>(blocks.count);
  }

  Message agreement(const UnitSpec& spec, const StepInfo& info) const override {
    if (!options_.shared) return {};
    return {
        .kind = Collective::all_reduce, .dtype = DType::f32, .bytes = sizes_of(spec, info).scores};
  }
  void propose(Context& context, const Source& source, const UnitSpec& spec, const StepInfo& info,
               const Outlet& outlet, std::byte* memory) const override {
    const auto scratch = lay_out<Scratch>(memory, spec, sizes_of(spec, info), options_.shared);
    score_blocks<false>(context.stream, source, spec, info, scratch.rows,
                        reinterpret_cast<float*>(outlet.data));
  }
  void agree(Context& context, const Payload& payload, const UnitSpec& spec, const StepInfo& info,
             std::byte* memory) const override {
    const Sizes sizes = sizes_of(spec, info);
    WISP_CHECK(payload.bytes == sizes.scores, "block-top-k: ", payload.bytes,
               " bytes of scores, expected ", sizes.scores);
    const auto* score = reinterpret_cast<const float*>(payload.data);
    const auto scratch = lay_out<Scratch>(memory, spec, sizes, options_.shared);
    select_blocks(context.stream, spec, info, score, scratch.ids, scratch.select);
  }

  Message message(const UnitSpec& spec, const StepInfo& info) const override {
    const Sizes sizes = sizes_of(spec, info);
    if (!options_.shared)
      return {.kind = Collective::all_gather, .bytes = sizes.ids + sizes.values};
    return {.kind = Collective::all_reduce, .dtype = options_.values, .bytes = sizes.values};
  }
  int64_t scratch_bytes(const UnitSpec& spec, const StepInfo& info) const override {
    return layout_bytes<Scratch>(spec, sizes_of(spec, info), options_.shared);
  }

  void encode(Context& context, const Source& source, const UnitSpec& spec, const StepInfo& info,
              const Outlet& outlet, std::byte* memory) const override {
    outlet.expect("block-top-k", message(spec, info).bytes);
    const Sizes sizes = sizes_of(spec, info);
    const auto scratch = lay_out<Scratch>(memory, spec, sizes, options_.shared);
    auto* ids = options_.shared ? scratch.ids : reinterpret_cast<uint32_t*>(outlet.data);
    std::byte* values = outlet.data + (options_.shared ? 0 : sizes.ids);
    if (!options_.shared) {
      score_blocks<true>(context.stream, source, spec, info, scratch.rows, scratch.scores);
      select_blocks(context.stream, spec, info, scratch.scores, ids, scratch.select);
    } else if (source.accumulates()) {
      parallel_for_ranges(context.stream, ranges_of(spec), TakeAll{source});
    }
    with_wire_type(options_.values, [&]<class Value>(Value) {
      const float most = largest_summand<Value>(options_.shared ? info.summands : 1);
      over_parts(context.stream, spec, info,
                 SendBlocks<Value>{source, most, ids, reinterpret_cast<Value*>(values)});
    });
  }

  void decode(Context& context, const Payload& payload, float weight, bool add,
              const UnitSpec& spec, const StepInfo& info, Tensor into,
              std::byte* memory) const override {
    payload.expect("block-top-k", message(spec, info).bytes);
    const Sizes sizes = sizes_of(spec, info);
    const uint32_t* ids = options_.shared ? lay_out<Scratch>(memory, spec, sizes, true).ids
                                          : reinterpret_cast<const uint32_t*>(payload.data);
    const std::byte* values = payload.data + (options_.shared ? 0 : sizes.ids);
    if (!add)
      parallel_for_ranges(context.stream, ranges_of(spec), ZeroAll<float>{into.data<float>()});
    with_wire_type(options_.values, [&]<class Value>(Value) {
      over_parts(context.stream, spec, info,
                 AddBlocks<Value>{ids, reinterpret_cast<const Value*>(values), weight,
                                  into.data<float>(), payload.complaints()});
    });
  }

 private:
  /// Computes the scores of all blocks, field after field.
  template <bool kTake>
  void score_blocks(const Stream& stream, const Source& source, const UnitSpec& spec,
                    const StepInfo& info, const UnitRows& rows, float* score) const {
    rows.write(stream, spec);
    SmallTeams<ScoreBlocks<kTake>> fields(stream);
    for (size_t f = 0; f < spec.fields.size(); ++f) {
      const Blocks blocks(spec.fields[f], options_.block_size, info.ratio);
      fields.add(blocks.count,
                 {source, rows, static_cast<int64_t>(f), blocks.size, score, options_.squares},
                 blocks.size);
      score += blocks.count;
    }
    fields.finish();
  }

  /// Writes the ids of the selected blocks, ascending, field after field in the order of `score`.
  void select_blocks(const Stream& stream, const UnitSpec& spec, const StepInfo& info,
                     const float* score, uint32_t* ids, std::byte* scratch) const {
    select_of_arrays(stream, std::ssize(spec.fields), scores_of(spec, info, options_.block_size),
                     score, ids, scratch);
  }

  /// Runs the kernel over all kept blocks, part by part.
  template <class Kernel>
  void over_parts(const Stream& stream, const UnitSpec& spec, const StepInfo& info,
                  const Kernel& kernel) const {
    parallel_rows(stream, kernel, PartRow::kBlocks * options_.block_size, [&](const auto& put) {
      int64_t id = 0, value = 0;
      for (size_t f = 0; f < spec.fields.size(); ++f) {
        const Field& field = spec.fields[f];
        const Blocks blocks(field, options_.block_size, info.ratio);
        each_slice(field, [&](const Slice& slice, int64_t begin) {
          const BlockPart part{blocks.size, begin, begin + slice.numel, slice.offset - begin};
          put({0, part, static_cast<int64_t>(f), field.numel, blocks.count, blocks.kept, id, value},
              (blocks.kept + PartRow::kBlocks - 1) / PartRow::kBlocks);
        });
        id += blocks.kept;
        value += blocks.kept * blocks.size;
      }
    });
  }

  /// Bytes of the parts of a unit; `select` is a selection's scratch.
  struct Sizes {
    int64_t scores = 0, ids = 0, values = 0, select = 0;
  };

  /// Scratch of a unit.
  struct Scratch {
    std::byte* select;
    UnitRows rows;
    uint32_t* ids;  // ids of the unit, if they are shared
    float* scores;  // scores of the unit if they are not shared

    Scratch(Cursor& cursor, const UnitSpec& spec, const Sizes& sizes, bool shared)
        : select(cursor.take<std::byte>(sizes.select)),
          rows(cursor, spec),
          ids(cursor.take<uint32_t>(shared ? sizes.ids / 4 : 0)),
          scores(cursor.take<float>(shared ? 0 : sizes.scores / 4)) {}
  };

  Sizes sizes_of(const UnitSpec& spec, const StepInfo& info) const {
    Sizes sizes;
    for (const Field& field : spec.fields) {
      const Blocks blocks(field, options_.block_size, info.ratio);
      sizes.scores += 4 * blocks.count;
      sizes.ids += 4 * blocks.kept;
      sizes.values += blocks.kept * blocks.size * size_of(options_.values);
    }
    sizes.select =
        select_of_arrays_bytes(std::ssize(spec.fields), scores_of(spec, info, options_.block_size));
    return sizes;
  }

  BlockTopkOptions options_;
};

const CodeRegistration block_topk_registration(
    "block_topk", "blocks with the largest norms, the same on all ranks (Sun et al. 2019)",
    [](Config& config, const CompressorSetup& setup) -> std::unique_ptr<Code> {
      BlockTopkOptions options;
      options.least_ratio = RatioSchedule(config).final_ratio();
      options.values = bind_summed_values(config);
      options.shared = bind_shared(config, !setup.alone);
      WISP_CHECK(
          !(options.shared && setup.alone), config.where("compression.sharing"),
          ": neighbours in gossip cannot agree on the same blocks; use compression.sharing = "
          "\"own\"");
      config.bind("compression.block_size", options.block_size, "elements of a block");
      config.bind_choice("compression.score", options.squares, {{"l1", false}, {"l2", true}},
                         "norm that scores a block: l1 or l2");
      return make_block_topk(options, config);
    },
    Feedback::ef);

}  // namespace

std::unique_ptr<Code> make_block_topk(const BlockTopkOptions& options, const Config& places) {
  places.expect(options.block_size > 0, "compression.block_size", options.block_size,
                "more than 0");
  check_summed_values(options.values);
  check_least_ratio(options.least_ratio);
  return std::make_unique<BlockTopk>(options);
}

}  // namespace wisp
