/**
 * The weight (RFC 9110, section 12.4.2) that an Accept header gives to a media type; 0 if it does not name it. Ranges such as `text/*` do
 * not name it.
 */
export function weightOf(accept: string | undefined, type: string): number {
  const weights = (accept ?? '').split(',').map((range) => {
    const [name = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase())
    const [weight = 1] = parameters.flatMap((text) => /^q\s*=\s*(\d(?:\.\d*)?)$/.exec(text)?.[1] ?? [])
    return name === type ? Number(weight) : 0
  })
  return Math.max(...weights)
}

/** Whether an Accept header names the media type, with a weight above 0. */
export const namesType = (accept: string | undefined, type: string): boolean => weightOf(accept, type) > 0
