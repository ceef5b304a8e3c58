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
