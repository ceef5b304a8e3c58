/** 128 random bits, in hex. (`crypto.randomUUID` is missing in pages that were not loaded over HTTPS.) */
export const randomKey = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join(
    '',
  )
