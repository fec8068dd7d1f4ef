// The interface to vendor libraries: one object for each kind of op. A context has one backend,
// which caches the library's objects; only the context's thread may use it. The activations of a
// call and their gradients have one type. Weights, statistics and their gradients have wide_of()
// that type. With bf16 activations, convolutions and products round their factors to bf16, add in
// f32 and round the result once; everything else is computed in f32.
#pragma once

#include <memory>
#include <string>

#include "core/device/stream.h"
#include "core/tensor/tensor.h"

namespace wisp {

class Products;
class Convolutions;
class Pools;
class Norms;
class RecurrentLayers;
class RealFft;

/// Number of library objects that a backend caches by shape. All objects of a step must fit, or
/// each step makes them anew. A convolution needs three objects. ResNet-50 has 68 convolutions of
/// different shapes, DenseNet-121 about 200. The smaller last batch of an epoch needs as many
/// again, an evaluation fewer. An object of oneDNN takes 50 to 125 kB and 0.4 to 3 ms to make, so
/// the cache has at most 64 MB.
constexpr int64_t kMostKeptObjects = 512;

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string name() const = 0;
  /// Everything that the bits of results depend on: library, version, instruction set.
  virtual std::string numerics() const { return name(); }
  /// Bytes that the backend holds from the pool for temporaries: the needs of the largest op so
  /// far.
  virtual int64_t workspace_bytes() const { return 0; }
  /// Number of library objects in the cache, at most kMostKeptObjects. The least recently used are
  /// dropped. Read between ops.
  virtual int64_t kept_objects() const { return 0; }
  /// Whether weights stored in bf16 save work beside bf16 activations. Only such a backend accepts
  /// bf16 weights in convolve() and the recurrent layers; gemm() always accepts both.
  virtual bool reads_rounded_weights() const { return false; }

  virtual Products& products() = 0;
  virtual Convolutions& convolutions() = 0;
  virtual Pools& pools() = 0;
  virtual Norms& norms() = 0;
  virtual RecurrentLayers& recurrent() = 0;
  virtual RealFft& fft() = 0;
};

/// Plain loops, in every type on every machine. Tests compare other backends with them, and CPUs
/// without a library run on them. An emulated device runs the same loops as its library.
std::unique_ptr<Backend> make_reference_backend(MemoryPool& pool, const Stream& stream);

/// Options of a GPU's libraries that trade accuracy or repeatability for speed. CPU libraries, and
/// so emulated devices, ignore them.
struct GpuMath {
  bool tf32 = false;          // products of f32 round their factors to 10 bits
  bool deterministic = true;  // the same bits in each run
};

/// The fastest backend of this build for the stream's device. The CPU has oneDNN if it was found,
/// else the reference; an emulated device has the CPU's.
std::unique_ptr<Backend> make_backend(MemoryPool& pool, const Stream& stream,
                                      const GpuMath& math = {});

// Implementations behind the two functions above; a program has one of each.
std::unique_ptr<Backend> make_cpu_reference_backend();
std::unique_ptr<Backend> make_cpu_backend(MemoryPool& pool);
std::unique_ptr<Backend> make_device_backend(MemoryPool& pool, const Stream& stream, bool fastest,
                                             const GpuMath& math);

/// Names what this program lacks to train on CUDA devices, and the remedy. Empty if it lacks
/// nothing.
std::string missing_for_cuda();

/// Names what this machine's CPU lacks for make_backend()'s backend to compute with activations of
/// type `compute`. Empty if it lacks nothing.
std::string missing_for(DType compute);

}  // namespace wisp
