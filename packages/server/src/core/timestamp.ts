const shape =
  /^(\d{4}-\d\d-\d\d)[Tt]((?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d)(?:\.(\d+))?([Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/

/**
 * Parses a time of RFC 3339; null if it is malformed. Returns milliseconds since 1970. A fraction of a millisecond is rounded up, so
 * that a comparison with whole milliseconds is exact.
 */
export function parseTimestamp(text: string): number | null {
  const [, date = '', time, fraction = '', offset = ''] = shape.exec(text) ?? []
  const midnight = Date.parse(`${date}T00:00:00Z`)
  // Date.parse accepts February 30.
  if (Number.isNaN(midnight) || !new Date(midnight).toISOString().startsWith(date)) return null
  const milliseconds = Number(fraction.slice(0, 3).padEnd(3, '0'))
  const roundedUp = /[1-9]/.test(fraction.slice(3)) ? 1 : 0
  return Date.parse(`${date}T${time}${offset.toUpperCase()}`) + milliseconds + roundedUp
}

/**
 * Returns a function that formats times in milliseconds since 1970 as RFC 3339, in UTC. It formats equal times that follow each other once: the
 * items of a form mostly have the same time, and to format it takes 0.4 µs, more than to describe the rest of an item.
 */
export function createTimestampFormat(): (time: number) => string {
  let last = Number.NaN
  let text = ''
  return (time) => {
    if (time !== last) {
      text = new Date(time).toISOString()
      last = time
    }
    return text
  }
}
