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

/** A run of the characters of JWTs, or of their percent-encodings: letters, digits, hyphens, underscores and dots. */
const dottedRun = /(?:[\w.-]|%(?:25)*(?:2[de]|3[0-9]|[46][1-9a-f]|[57][0-9a]|5f))+/gi

const dot = /\.|%(?:25)*2e/i

/** Characters. The header of a JWT has more, and so have its claims and its signature. */
const jwtPart = 16

/** Whether three long parts follow each other, as in a JWT. */
function hasJwt(run: string): boolean {
  const isLong = run.split(dot).map((part) => part.length >= jwtPart)
  return isLong.some((long, index) => long && isLong[index + 1] === true && isLong[index + 2] === true)
}

/**
 * Replaces every token by `mbkt_…`, also if it is percent-encoded or may be a token without its prefix, and every JWT by `jwt_…`.
 */
export const redactTokens = (text: string): string =>
  text.replace(dottedRun, (run) => (hasJwt(run) ? 'jwt_…' : run)).replace(token, 'mbkt_…')
