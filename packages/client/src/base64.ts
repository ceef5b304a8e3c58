/** Base64 of bytes, or of text in UTF-8. (btoa takes no other text than Latin-1.) */
export function base64(data: string | ArrayBuffer): string {
  const bytes = typeof data === 'string' ? new TextEncoder().encode(data) : new Uint8Array(data)
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''))
}
