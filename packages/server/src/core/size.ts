const powers = ['', 'k', 'm', 'g', 't']

/**
 * Bytes of `500`, `10kB`, `5 MB`, `1TB` (powers of 1000) and `5MiB`, `5GiB` (powers of 1024), in any case;
 * null when malformed or beyond 2^53 − 1.
 */
export function parseSize(text: string): number | null {
  const match = /^(0|[1-9][0-9]*)(?: ?(?:([kmgt]?)b|([kmgt])ib))?$/i.exec(text)
  if (match === null) return null
  const [, amount, decimal = '', binary] = match
  const power = powers.indexOf((binary ?? decimal).toLowerCase())
  const bytes = Number(amount) * (binary === undefined ? 1000 : 1024) ** power
  return Number.isSafeInteger(bytes) ? bytes : null
}
