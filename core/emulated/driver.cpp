// The CUDA driver's calls on emulated devices.
#include <cuda.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <map>
#include <string_view>

#include "core/emulated/memory.h"

namespace wisp::emulated {
namespace {

constexpr size_t kGranularity = size_t{2} << 20;  // an H100's

std::byte* pointer(CUdeviceptr address) {
  return reinterpret_cast<std::byte*>(address);  // NOLINT(performance-no-int-to-ptr): CUDA's type
}

CUresult result(bool good) { return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE; }

bool whole(size_t bytes) { return bytes > 0 && bytes % kGranularity == 0; }

}  // namespace
}  // namespace wisp::emulated

using namespace wisp::emulated;  // the functions below are CUDA's

CUresult cuMemAddressReserve(CUdeviceptr* begin, size_t bytes, size_t, CUdeviceptr,
                             unsigned long long) {
  if (!whole(bytes)) return CUDA_ERROR_INVALID_VALUE;
  *begin = reinterpret_cast<CUdeviceptr>(Memory::get().reserve(bytes));
  return *begin ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemAddressFree(CUdeviceptr begin, size_t bytes) {
  return result(Memory::get().release(pointer(begin), bytes));
}

CUresult cuMemGetAllocationGranularity(size_t* bytes, const CUmemAllocationProp*,
                                       CUmemAllocationGranularity_flags) {
  *bytes = kGranularity;
  return CUDA_SUCCESS;
}

// Memory is allocated when it is mapped, so a handle is only the size.
CUresult cuMemCreate(CUmemGenericAllocationHandle* memory, size_t bytes, const CUmemAllocationProp*,
                     unsigned long long) {
  if (!whole(bytes)) return CUDA_ERROR_INVALID_VALUE;
  if (bytes > Memory::get().limit() - Memory::get().mapped_bytes()) return CUDA_ERROR_OUT_OF_MEMORY;
  *memory = bytes;
  return CUDA_SUCCESS;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle) { return CUDA_SUCCESS; }

CUresult cuMemMap(CUdeviceptr at, size_t bytes, size_t offset, CUmemGenericAllocationHandle memory,
                  unsigned long long) {
  if (offset != 0 || bytes != memory) return CUDA_ERROR_INVALID_VALUE;
  return result(Memory::get().map(pointer(at), bytes));
}

CUresult cuMemUnmap(CUdeviceptr at, size_t bytes) {
  return result(Memory::get().unmap(pointer(at), bytes));
}

CUresult cuMemSetAccess(CUdeviceptr at, size_t bytes, const CUmemAccessDesc*, size_t count) {
  return result(count == 1 && Memory::get().alias(pointer(at), bytes) != nullptr);
}

CUresult cuGetErrorString(CUresult error, const char** text) {
  *text = error == CUDA_ERROR_OUT_OF_MEMORY ? "out of memory" : "invalid argument";
  return CUDA_SUCCESS;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult* found) {
  static const std::map<std::string_view, void*> functions = {
      {"cuMemAddressReserve", reinterpret_cast<void*>(&cuMemAddressReserve)},
      {"cuMemAddressFree", reinterpret_cast<void*>(&cuMemAddressFree)},
      {"cuMemGetAllocationGranularity", reinterpret_cast<void*>(&cuMemGetAllocationGranularity)},
      {"cuMemCreate", reinterpret_cast<void*>(&cuMemCreate)},
      {"cuMemRelease", reinterpret_cast<void*>(&cuMemRelease)},
      {"cuMemMap", reinterpret_cast<void*>(&cuMemMap)},
      {"cuMemUnmap", reinterpret_cast<void*>(&cuMemUnmap)},
      {"cuMemSetAccess", reinterpret_cast<void*>(&cuMemSetAccess)},
      {"cuGetErrorString", reinterpret_cast<void*>(&cuGetErrorString)},
  };
  const auto there = functions.find(symbol);
  *function = there == functions.end() ? nullptr : there->second;
  *found = *function ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}
