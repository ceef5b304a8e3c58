const units = ['B', 'kB', 'MB', 'GB', 'TB']

/** Bytes in decimal units: `512 B`, `1.5 MB`. */
export function formatSize(bytes: number): string {
  // From 999.95 on, rounding to one decimal would give 1000 of the unit.
  const power = units.findIndex((_, at) => bytes < (at === 0 ? 1000 : 999.95 * 1000 ** at))
  const at = power === -1 ? units.length - 1 : power
  return `${at === 0 ? bytes : (bytes / 1000 ** at).toFixed(1)} ${units[at]}`
}

/** Characters that move the cursor of a terminal, change the text direction or break a line. */
const controls = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu

/** Replaces control characters, so that the text is one line and cannot control the terminal. */
export const printableText = (text: string): string => text.replace(controls, '\ufffd')

/** The same for a text of several lines. */
export const printableLines = (text: string): string => text.split('\n').map(printableText).join('\n')

/** JSON on one line. Control characters are escaped, which changes no value. */
export const jsonLine = (value: unknown): string =>
  JSON.stringify(value).replace(controls, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)

const isWide = (char: string): boolean =>
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u.test(
    char,
  )

/** The width of the text in columns of a terminal. */
export const textWidth = (text: string): number =>
  [...text].reduce((sum, char) => sum + (isWide(char) ? 2 : 1), 0)

/** Fits the text to exactly this width: pads it with spaces, or cuts its beginning, because the end of a path is more specific. */
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
