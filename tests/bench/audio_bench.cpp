// Times a loader thread's work on speech. It reads all FLAC, WAV and SPHERE files below a
// directory, perturbs them and computes features. Each figure is hours of audio per second of CPU
// time, the best of the repetitions. Usage: audio_bench DIR [repetitions]
#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "data/speech/audio_augment.h"
#include "data/speech/audio_file.h"
#include "data/speech/resample.h"
#include "data/speech/spectrogram.h"

namespace wisp {
namespace {

std::vector<std::string> sound_files(const std::string& directory) {
  const std::set<std::string> endings{".flac", ".wav", ".sph"};
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory))
    if (endings.contains(entry.path().extension())) files.push_back(entry.path());
  WISP_CHECK(!files.empty(), directory, " holds no .flac, .wav or .sph file");
  std::sort(files.begin(), files.end());
  return files;
}

void bench(const std::string& directory, int repetitions) {
  constexpr int64_t kRate = 16000;
  const std::vector<std::string> files = sound_files(directory);
  std::vector<Audio> sounds;
  double hours = 0;
  for (const std::string& file : files) {
    sounds.push_back(read_audio(file));
    hours += static_cast<double>(sounds.back().samples.size()) /
             static_cast<double>(sounds.back().rate) / 3600;
  }
  fmt::print("{} files, {:.3f} hours\n", files.size(), hours);

  const auto time = [&](const char* what, double of, const std::function<void(size_t)>& work) {
    double least = 1e30;  // CPU seconds
    for (int r = 0; r < repetitions; ++r) {
      const std::clock_t begin = std::clock();
      for (size_t i = 0; i < files.size(); ++i) work(i);
      least = std::min(least, static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
    }
    fmt::print("{:32} {:6.2f} s  {:6.3f} hours/s\n", what, least, of / least);
  };
  const Spectrogram linear({.rate = kRate}), mel({.rate = kRate, .mels = 40});
  const Resampler resampler(44100, kRate);
  const AudioAugment speeds({.speed_percent = 10});
  const AudioAugment noise({.gain_db = 6, .noise_share = 1}, {sounds.front().samples});
  const auto key = [](size_t i) { return SampleKey{1, 0, static_cast<int64_t>(i)}; };
  time("read", hours, [&](size_t i) { read_audio(files[i]); });
  time("features, 161 frequencies", hours, [&](size_t i) { linear.compute(sounds[i].samples); });
  time("features, 40 mel bands", hours, [&](size_t i) { mel.compute(sounds[i].samples); });
  time("resample, as if at 44.1 kHz", hours * kRate / 44100,
       [&](size_t i) { resampler.resample(sounds[i].samples); });
  time("speeds", hours, [&](size_t i) { speeds.perturb(sounds[i].samples, key(i)); });
  time("noise and gain", hours, [&](size_t i) { noise.perturb(sounds[i].samples, key(i)); });
  time("read, features", hours, [&](size_t i) { linear.compute(read_audio(files[i]).samples); });
}

}  // namespace
}  // namespace wisp

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: audio_bench DIR [repetitions]\n");
    return 2;
  }
  try {
    wisp::bench(argv[1], argc > 2 ? std::atoi(argv[2]) : 3);
  } catch (const std::exception& error) {
    fmt::print(stderr, "audio_bench: {}\n", error.what());
    return 1;
  }
}
