/** FNV-1a with a final mix: 32 bits, each of which depends on every character. For tables in memory, not for security. */
export function stringHash(text: string): number {
  let hash = 0x811c9dc5
  for (let index = 0; index < text.length; index += 1)
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  return (hash ^ (hash >>> 13)) >>> 0
}

/** Unused memory in front of bytes, in which a response writes its head: then one write sends both. Bytes. */
export const headRoom = 768

/** Memory for `size` bytes, with nothing else in it except the head room. */
export const allocateWithHeadRoom = (size: number): Buffer<ArrayBuffer> =>
  Buffer.allocUnsafeSlow(headRoom + size).subarray(headRoom)

export function withHeadRoom(bytes: Uint8Array): Buffer<ArrayBuffer> {
  const copy = allocateWithHeadRoom(bytes.length)
  copy.set(bytes)
  return copy
}

export const hasHeadRoom = ({ buffer, byteOffset, length }: Uint8Array): boolean =>
  byteOffset === headRoom && buffer.byteLength === headRoom + length
