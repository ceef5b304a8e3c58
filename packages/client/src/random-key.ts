/** 128 random bits, in hex. (Pages that were not loaded over HTTPS have no `crypto.randomUUID`.) */
export const randomKey = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join(
    '',
  )
