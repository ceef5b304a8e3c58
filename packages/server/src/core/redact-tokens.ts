/** A letter or digit in a URL: the character, or its percent-encoding, encoded any number of times. */
const letterOrDigit = '(?:[0-9a-z]|%(?:25)*(?:3[0-9]|[46][1-9a-f]|[57][0-9a]))'

/** A letter in upper or lower case, or its percent-encoding. */
const patternOf = (letter: string) => {
  const codes = new Set([letter, letter.toUpperCase()].map((one) => one.charCodeAt(0).toString(16)))
  return `(?:${letter}|%(?:25)*(?:${[...codes].join('|')}))`
}

/** The length of a token after its prefix. No id, code or asset name of the service has as many letters and digits in a row. */
const secretLength = 38

const token = new RegExp(
  `${[...'mbkt_'].map(patternOf).join('')}${letterOrDigit}*|${letterOrDigit}{${secretLength},}`,
  'gi',
)

/** A run of the characters of JWTs, or of their percent-encodings: letters, digits, hyphens, underscores and dots. */
const dottedRun = /(?:[\w.-]|%(?:25)*(?:2[de]|3[0-9]|[46][1-9a-f]|[57][0-9a]|5f))+/gi

const dot = /\.|%(?:25)*2e/i

/** The header, the claims and the signature of a JWT each have at least this many characters. */
const minJwtPart = 16

/** Whether three long parts follow each other, as in a JWT. */
function hasJwt(run: string): boolean {
  const isLong = run.split(dot).map((part) => part.length >= minJwtPart)
  return isLong.some((long, index) => long && isLong[index + 1] === true && isLong[index + 2] === true)
}

/**
 * Replaces every token by `mbkt_…` and every JWT by `jwt_…`, also percent-encoded ones. Replaces long runs of
 * letters and digits too: they may be tokens without their prefix.
 */
export const redactTokens = (text: string): string =>
  text.replace(dottedRun, (run) => (hasJwt(run) ? 'jwt_…' : run)).replace(token, 'mbkt_…')
