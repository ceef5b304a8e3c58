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

/** A signature has 43 characters in base64url, of which random ones are in upper and in lower case. */
const minSignature = 40

const encoded = /%(?:25)*([0-9a-f]{2})/gi

const hasSignature = (run: string): boolean =>
  run.length >= minSignature &&
  run
    .replace(encoded, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
    .split('.')
    .some((part) => part.length >= minSignature && /[a-z]/.test(part) && /[A-Z]/.test(part))

/**
 * Replaces every token by `mbkt_…`, every JWT by `jwt_…` and every signature of a URL by `signature_…`, also percent-encoded ones.
 * Replaces long runs of letters and digits too: they may be tokens without their prefix.
 */
export const redactTokens = (text: string): string =>
  text
    .replace(dottedRun, (run) => (hasJwt(run) ? 'jwt_…' : hasSignature(run) ? 'signature_…' : run))
    .replace(token, 'mbkt_…')
