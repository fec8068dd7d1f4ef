// 1-bit SGD: a bit per element and two values per column of the gradient matrix. With a = e + g:
//   bit = a >= 0;   r1 = mean of the column's a >= 0, r0 = mean of the others;   e <- a - r(bit)
// Each worker owns some of a unit's columns. All workers send the owner their bits of these
// columns. The owner adds them up and sends the sum to all in the same form, with its own residual
// e':
//   s = Σ over workers of r(bit);   e' + s is quantized like a;   all apply r(bit) of this
// A column belongs to one output and is a row of our (outputs, inputs) matrix; a vector is one
// column. Wire, to owner and from owner: 8 bytes (r0, r1) and ceil(length / 8) bytes of bits per
// column. Source: Seide et al. 2014, sections 3.1 and 3.2 (there AdaGrad acts on the sum before the
// second quantization, and there is double buffering; here the optimizer acts after it).
#include <algorithm>

#include "compression/hand_over.h"
#include "compression/methods/methods.h"
#include "compression/quantize/sign_plane.h"

namespace wisp {
namespace {

/// Columns of a field that are sent together.
struct Columns {
  int64_t offset;  // arena index of the first column
  int64_t count, length;

  WISP_HD int64_t bytes() const { return count * (8 + Plane<1>::bytes(length)); }
  /// Size on the wire, filled up with zeros to a whole float.
  WISP_HD int64_t padded_bytes() const { return (bytes() + 3) / 4 * 4; }
  WISP_HD int64_t begin(int64_t column) const { return offset + column * length; }
  /// The bits of a column, behind the values of all columns.
  template <class Byte>
  WISP_HD Plane<1, Byte> plane(Byte* payload, int64_t column) const {
    return {payload + 8 * count + column * Plane<1>::bytes(length), length};
  }
};

/// The two means of a column. Sums are in a team's lanes, so the result is the same on every
/// device, and in double, because a column's sum may exceed every float.
template <class Team>
struct Means {
  typename Team::template PerLane<double> low, high;
  typename Team::template PerLane<int32_t> positive;

  WISP_HD void add(int64_t lane, float value) {
    // Masks, because g++ makes branches of three conditions and then does not vectorise.
    const uint32_t up = 0u - static_cast<uint32_t>(value >= 0.0f);
    high[lane] += static_cast<double>(float_from_bits(float_bits(value) & up));
    low[lane] += static_cast<double>(float_from_bits(float_bits(value) & ~up));
    positive[lane] -= static_cast<int32_t>(up);
  }
  /// The means of `length` numbers; `zeros` padding zeros were added too.
  WISP_HD void finish(const Team& team, int64_t length, int64_t zeros, float* r) {
    const double below = team.sum(low), above = team.sum(high);
    const int64_t count = team.sum(positive) - zeros;
    r[0] = count < length ? static_cast<float>(below / static_cast<double>(length - count)) : 0.0f;
    r[1] = count > 0 ? static_cast<float>(above / static_cast<double>(count)) : 0.0f;
  }
};

struct EncodeColumn {
  using Shared = group::Codes;
  Source source;
  Columns columns;
  std::byte* out;  // (r0, r1) of all columns, then their bits
  template <class Team>
  WISP_HD void operator()(const Team& team, int64_t column, Shared& positive) const {
    group::by_kind(source, [&](const Source& kind) { encode(team, kind, column, positive); });
  }
  template <class Team>
  WISP_HD void encode(const Team& team, const Source& kind, int64_t column,
                      Shared& positive) const {
    const int64_t begin = columns.begin(column);
    const int64_t groups = Plane<1>::groups(columns.length);
    Means<Team> means;
    group::each_group(kind, begin, columns.length, [&](const auto& x) {
      team.lanes([&](int64_t lane) {
        means.add(lane, x(lane));
        means.add(lane, x(lane + group::kLanes));
        means.add(lane, x(lane + 2 * group::kLanes));
        means.add(lane, x(lane + 3 * group::kLanes));
      });
    });
    float r[2];
    means.finish(team, columns.length, groups * group::kSize - columns.length, r);
    auto* values = reinterpret_cast<float*>(out) + 2 * column;
    team.once([&] {
      values[0] = r[0];
      values[1] = r[1];
    });
    const Plane<1> plane = columns.plane(out, column);
    for (int64_t group = 0; group < groups; ++group)
      send_signs(team, kind, begin, plane, group, r[0], r[1], positive);
    if (column < columns.count - 1) return;
    std::byte* end = out + columns.bytes();
    team.each(columns.padded_bytes() - columns.bytes(), [&](int64_t i) { end[i] = std::byte{0}; });
  }
};

struct DecodeColumn {
  using Shared = group::Codes;
  const std::byte* in;
  Columns columns;
  bool add;
  float* arena;
  template <class Team>
  WISP_HD void operator()(const Team& team, int64_t column, Shared& bits) const {
    const auto* r = reinterpret_cast<const float*>(in) + 2 * column;
    const ReadPlane plane = columns.plane(in, column);
    for (int64_t group = 0; group < ReadPlane::groups(columns.length); ++group)
      select_by_bits(team, plane, group, r[0], r[1], add, arena + columns.begin(column), bits);
  }
};

struct WriteUsed {
  int64_t bytes;
  int64_t* used;
  WISP_HD void operator()() const { *used = bytes; }
};

class OneBit final : public Compressor {
 public:
  explicit OneBit(const OneBitOptions& options) : options_(options) {}

  Traits traits() const override {
    return {.scopes = {Scope::layer},
            .dense_1d = false,
            .clipping = options_.feedback ? Clipping::local_only : Clipping::better_local};
  }
  bool started(const StepInfo& info) const override { return info.applied >= options_.start_after; }
  std::vector<StateSpec> state(const UnitSpec&, int) const override {
    if (!options_.feedback) return {};
    return {{.name = "residual"}, {.name = "owner_residual", .on_resize = OnResize::owner}};
  }
  std::vector<Slice> owned(const UnitSpec& spec, int rank, int ranks) const override {
    std::vector<Slice> slices;
    each_part(spec, ranks, rank, [&](const Columns& columns) {
      slices.push_back({columns.offset, columns.count * columns.length});
    });
    return slices;
  }
  int rounds(const UnitSpec&, const StepInfo&) const override { return 2; }

  /// Each owner gets its columns, and sends the same bytes to all.
  Message message(const UnitSpec& spec, const StepInfo& info, int round) const override {
    int64_t most = 0;
    for (int owner = 0; owner < info.ranks; ++owner)
      most = std::max(most, bytes_of(spec, info.ranks, owner));
    return {.kind = round == 0 ? Collective::all_to_all : Collective::all_gather,
            .bytes = most,
            .variable = true};
  }

  void encode(Context& context, Unit& unit, const StepInfo& info, int round,
              std::span<const Outlet> outlets) override {
    Source source;
    if (unit.finite || round == 1) {
      source.gradient = unit.gradient.data<float>();
      if (options_.feedback)
        source.kept = unit.state->tensors[static_cast<size_t>(round)].data<float>();
    }
    for (size_t i = 0; i < outlets.size(); ++i) {
      const int owner = round == 0 ? static_cast<int>(i) : info.rank;
      std::byte* out = outlets[i].data;
      SmallTeams<EncodeColumn> fields(context.stream);
      each_part(unit.spec, info.ranks, owner, [&](const Columns& columns) {
        fields.add(columns.count, {source, columns, out}, columns.length);
        out += columns.padded_bytes();
      });
      fields.finish();
      run_once(context.stream, WriteUsed{out - outlets[i].data, outlets[i].used});
    }
  }

  void decode(Context& context, Unit& unit, const StepInfo& info, int round,
              std::span<const Payload> payloads) override {
    for (size_t i = 0; i < payloads.size(); ++i) {
      const Payload& payload = payloads[i];
      const int owner = round == 0 ? info.rank : payload.from;
      payload.expect("onebit", bytes_of(unit.spec, info.ranks, owner));
      const std::byte* in = payload.data;
      SmallTeams<DecodeColumn> fields(context.stream);
      each_part(unit.spec, info.ranks, owner, [&](const Columns& columns) {
        fields.add(columns.count, {in, columns, round == 0 && i > 0, unit.gradient.data<float>()},
                   columns.length);
        in += columns.padded_bytes();
      });
      fields.finish();
    }
  }

  void release(Context& context, Unit& unit, const StepInfo&) override {
    for (const Tensor& residual : unit.state->tensors) hand_over(context, unit, residual, 1.0);
  }

 private:
  /// visit(columns) for the columns of each field that `owner` owns. A column belongs to the rank
  /// whose share of the unit's elements contains the column's first element.
  template <class Visit>
  static void each_part(const UnitSpec& spec, int ranks, int owner, const Visit& visit) {
    int64_t before = 0;  // elements of earlier fields
    for (const Field& field : spec.fields) {
      const int64_t length = field.numel / field.rows;
      const int64_t from = first_column(spec, ranks, owner, before, field.rows, length);
      const int64_t to = first_column(spec, ranks, owner + 1, before, field.rows, length);
      if (from < to) visit(Columns{field.slices.front().offset + from * length, to - from, length});
      before += field.numel;
    }
  }

  /// The first of a field's `count` columns that does not begin before the owner's share.
  static int64_t first_column(const UnitSpec& spec, int ranks, int owner, int64_t before,
                              int64_t count, int64_t length) {
    const int64_t share = spec.numel * owner / ranks - before;
    return std::clamp<int64_t>((share + length - 1) / length, 0, count);
  }

  static int64_t bytes_of(const UnitSpec& spec, int ranks, int owner) {
    int64_t bytes = 0;
    each_part(spec, ranks, owner, [&](const Columns& columns) { bytes += columns.padded_bytes(); });
    return bytes;
  }

  OneBitOptions options_;
};

const CompressorRegistration onebit_registration(
    "onebit",
    "one bit per element and two means per column, with two residuals (Seide et al. 2014)",
    [](Config& config, const CompressorSetup& setup) -> std::unique_ptr<Compressor> {
      const FeedbackOptions options = bind_feedback(config, setup, Feedback::ef);
      WISP_CHECK(
          !options.update_units && (options.kind == Feedback::ef || options.kind == Feedback::none),
          config.where("compression.feedback"),
          ": onebit's two residuals are in units of "
          "the gradient: compression.feedback is ef or none");
      return make_onebit({options.kind == Feedback::ef, bind_start_after(config)}, config);
    });

}  // namespace

std::unique_ptr<Compressor> make_onebit(const OneBitOptions& options, const Config& places) {
  check_start_after(options.start_after, places);
  return std::make_unique<OneBit>(options);
}

}  // namespace wisp
