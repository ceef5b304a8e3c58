/** Base64 of bytes, or of text in UTF-8. (`btoa` accepts only Latin-1 text.) */
export function base64(data: string | ArrayBuffer): string {
  const bytes = typeof data === 'string' ? new TextEncoder().encode(data) : new Uint8Array(data)
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''))
}

interface Platform {
  readonly crypto: {
    readonly subtle?: { digest(algorithm: string, bytes: ArrayBuffer): Promise<ArrayBuffer> }
  }
}

/** The SHA-256 of bytes in base64. Null in pages that were not loaded over HTTPS, where browsers have no `crypto.subtle`. */
export async function sha256Base64(bytes: ArrayBuffer): Promise<string | null> {
  const { subtle } = (globalThis as Platform).crypto
  return subtle ? base64(await subtle.digest('SHA-256', bytes)) : null
}
