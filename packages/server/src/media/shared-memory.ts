/** The longest buffer that several small files share. Bytes. */
const maxShared = 65_536

/**
 * Returns a function that allocates memory for the small files of a request. Passing a buffer to the writer thread takes as long as receiving
 * a small file, so small files share buffers. The unused part of a buffer is at most as long as what was allocated before it.
 * `onAllocate` is called with the length of each buffer.
 */
export function createSharedMemory(
  onAllocate: (length: number) => void = () => undefined,
): (size: number) => Buffer<ArrayBuffer> {
  let buffer = Buffer.allocUnsafeSlow(0)
  let unused = 0
  let allocated = 0
  return (size) => {
    if (size > unused) {
      const length = Math.max(size, Math.min(allocated, maxShared))
      const added = Buffer.allocUnsafeSlow(length)
      onAllocate(length)
      // The previous buffer stays in use if it has more unused memory.
      if (length - size < unused) return added.subarray(0, size)
      buffer = added
      unused = length
    }
    const start = buffer.length - unused
    unused -= size
    allocated += size
    return buffer.subarray(start, start + size)
  }
}
