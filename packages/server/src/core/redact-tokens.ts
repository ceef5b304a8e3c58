/** A letter or digit as it stands in a URL: itself, or its escape, which may itself be escaped any number of times. */
const letterOrDigit = '(?:[0-9a-z]|%(?:25)*(?:3[0-9]|[46][1-9a-f]|[57][0-9a]))'

const spelled = (letter: string) => {
  const codes = new Set([letter, letter.toUpperCase()].map((one) => one.charCodeAt(0).toString(16)))
  return `(?:${letter}|%(?:25)*(?:${[...codes].join('|')}))`
}

/** What a token has after its prefix; no id, code or asset of the service has as many letters in a row. */
const secretLength = 38

const token = new RegExp(
  `${[...'mbkt_'].map(spelled).join('')}${letterOrDigit}*|${letterOrDigit}{${secretLength},}`,
  'gi',
)

/** A text with `mbkt_…` in place of every token, however much of it is escaped, and of what may be one without its prefix. */
export const redactTokens = (text: string): string => text.replace(token, 'mbkt_…')
