const units = ['B', 'kB', 'MB', 'GB', 'TB']

/** Bytes as people read them, in the decimal units of the settings: `512 B`, `1.5 MB`. */
export function formatSize(bytes: number): string {
  // From 999.95 on, one digit after the point would round to a thousand of the unit.
  const power = units.findIndex((_, at) => bytes < (at === 0 ? 1000 : 999.95 * 1000 ** at))
  const at = power === -1 ? units.length - 1 : power
  return `${at === 0 ? bytes : (bytes / 1000 ** at).toFixed(1)} ${units[at]}`
}

/** A name without what could move a terminal's cursor or break a line. */
export const printableText = (name: string): string =>
  name.replace(/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu, '\ufffd')

const isWide = (char: string): boolean =>
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u.test(
    char,
  )

/** Columns of a terminal that the text takes. */
export const textWidth = (text: string): number =>
  [...text].reduce((sum, char) => sum + (isWide(char) ? 2 : 1), 0)

/** The text in exactly so many columns of a terminal: its end, which tells more of a path, or filled with spaces. */
export function fitEnd(text: string, columns: number): string {
  let width = 0
  const kept: string[] = []
  const chars = [...text]
  for (const [index, char] of chars.toReversed().entries()) {
    const wide = isWide(char) ? 2 : 1
    const isLast = index === chars.length - 1
    if (width + wide > columns - (isLast ? 0 : 1)) {
      kept.push('…')
      width += 1
      break
    }
    kept.push(char)
    width += wide
  }
  return kept.reverse().join('') + ' '.repeat(Math.max(0, columns - width))
}
