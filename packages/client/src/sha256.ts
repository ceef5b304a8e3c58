import { base64 } from './base64.ts'

interface Platform {
  readonly crypto: {
    readonly subtle?: { digest(algorithm: string, bytes: ArrayBuffer): Promise<ArrayBuffer> }
  }
}

/** Base64 of the SHA-256; null in pages that were not loaded over HTTPS, to which browsers do not offer it. */
export async function sha256(bytes: ArrayBuffer): Promise<string | null> {
  const { subtle } = (globalThis as Platform).crypto
  return subtle ? base64(await subtle.digest('SHA-256', bytes)) : null
}
