/** Read at the beginning, in the middle and at the end of a file. Bytes. */
const sampleLength = 65_536

/**
 * A 32-bit hash of three samples of a file's content. Name, size and time do not always distinguish two files, and a
 * resumable upload that continued with another file's bytes would store a mixture of both.
 */
export async function sampleHash(file: Blob): Promise<number> {
  const starts = [0, Math.floor(file.size / 2), Math.max(0, file.size - sampleLength)]
  const samples = await Promise.all(
    starts.map((start) => file.slice(start, start + sampleLength).arrayBuffer()),
  )
  // FNV-1a, because crypto.subtle is missing in pages that were not loaded over HTTPS.
  let hash = 0x811c9dc5
  for (const sample of samples) {
    for (const byte of new Uint8Array(sample)) hash = Math.imul(hash ^ byte, 0x01000193)
  }
  return hash >>> 0
}
