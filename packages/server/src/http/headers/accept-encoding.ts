/** Whether an Accept-Encoding header allows the coding, and does not prefer none (RFC 9110, section 12.5.3); false without the header. */
export function acceptsCoding(header: string | undefined, coding: 'gzip' | 'br'): boolean {
  if (header === undefined) return false
  const weights = new Map(
    header.split(',').map((item) => {
      const [name = '', ...parameters] = item.split(';').map((part) => part.trim().toLowerCase())
      const weight = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2)
      return [name, weight === undefined ? 1 : Number(weight)]
    }),
  )
  const weight = weights.get(coding) ?? weights.get(`x-${coding}`) ?? weights.get('*') ?? 0
  return weight > 0 && weight >= (weights.get('identity') ?? 0)
}
