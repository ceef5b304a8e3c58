/** A letter or digit in a URL: the character, or its percent-encoding, encoded any number of times. */
const letterOrDigit = '(?:[0-9a-z]|%(?:25)*(?:3[0-9]|[46][1-9a-f]|[57][0-9a]))'

const spelled = (letter: string) => {
  const codes = new Set([letter, letter.toUpperCase()].map((one) => one.charCodeAt(0).toString(16)))
  return `(?:${letter}|%(?:25)*(?:${[...codes].join('|')}))`
}

/** The length of a token after its prefix. No id, code or asset name of the service has as many letters in a row. */
const secretLength = 38

const token = new RegExp(
  `${[...'mbkt_'].map(spelled).join('')}${letterOrDigit}*|${letterOrDigit}{${secretLength},}`,
  'gi',
)

/** Replaces every token by `mbkt_…`, also if it is percent-encoded or may be a token without its prefix. */
export const redactTokens = (text: string): string => text.replace(token, 'mbkt_…')
