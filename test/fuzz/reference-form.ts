/** Reads the files of a form by RFC 2046 and RFC 7578 from the complete body, line by line. */
export interface ReferenceFile {
  readonly filename: string | null
  readonly bytes: string
}

class Refused extends Error {}

/**
 * The files of a form, or null where the form is malformed or ambiguous. Shares no code and no method with the
 * service: it splits the complete body into lines and reads headers character by character. Bytes are Latin-1.
 */
export function referenceFiles(body: string, boundary: string): ReferenceFile[] | null {
  try {
    return readForm(body, boundary)
  } catch (error) {
    if (error instanceof Refused) return null
    throw error
  }
}

function refuse(): never {
  throw new Refused()
}

function readForm(body: string, boundary: string): ReferenceFile[] {
  const dashed = `--${boundary}`
  const lines = body.split('\r\n')
  const outside: string[] = []
  const parts: string[][] = []
  let state: 'before' | 'inside' | 'after' = 'before'
  for (const [index, line] of lines.entries()) {
    if (line.includes(`\r${dashed}`) || line.includes(`\n${dashed}`)) refuse()
    if (!line.startsWith(dashed)) {
      if (state === 'inside') parts.at(-1)?.push(line)
      else outside.push(line)
      continue
    }
    const rest = line.slice(dashed.length)
    if (state === 'after') refuse()
    if (withoutPadding(rest) === '') {
      if (index === lines.length - 1) refuse()
      state = 'inside'
      parts.push([])
    } else if (rest.startsWith('--') && withoutPadding(rest.slice(2)) === '') state = 'after'
    else refuse()
  }
  if (state !== 'after') refuse()
  if (outside.join('\r\n').toLowerCase().includes('content-disposition')) refuse()
  return parts.flatMap(readPart)
}

const withoutPadding = (text: string): string => [...text].filter((c) => c !== ' ' && c !== '\t').join('')

function readPart(lines: readonly string[]): ReferenceFile[] {
  const blank = lines.indexOf('')
  if (blank < 0) refuse()
  const headers: [name: string, value: string][] = []
  for (const line of lines.slice(0, blank)) {
    const last = headers.at(-1)
    if (line.startsWith(' ') || line.startsWith('\t')) {
      if (!last) refuse()
      last[1] += line
      continue
    }
    const colon = line.indexOf(':')
    if (colon < 1 || /[\r\n]/.test(line)) refuse()
    headers.push([line.slice(0, colon).toLowerCase(), line.slice(colon + 1)])
  }
  const one = (name: string): string | undefined => {
    const values = headers.filter(([known]) => known === name).map(([, value]) => value.trim())
    if (values.length > 1) refuse()
    return values[0]
  }
  const parameters = readDisposition(one('content-disposition') ?? refuse())
  const type = one('content-type')?.split(';')[0]?.trim().toLowerCase()
  if (!['7bit', '8bit', 'binary', undefined].includes(one('content-transfer-encoding')?.toLowerCase()))
    refuse()
  if ([...parameters.keys()].some((name) => /\*\d/.test(name)) || !parameters.get('name')) refuse()
  const named = parameters.has('filename') || parameters.has('filename*')
  if (!named && type?.startsWith('multipart/')) refuse()
  const isField =
    type === undefined ||
    type.startsWith('text/') ||
    (type.startsWith('application/') && /\b(json|xml|x-www-form-urlencoded)$/.test(type))
  if (!named && isField) return []
  const bytes = lines.slice(blank + 1).join('\r\n')
  if (parameters.get('filename') === '' && bytes === '') return []
  return [{ filename: parameters.get('filename') ?? null, bytes }]
}

/** The parameters of `form-data; name=value; name="value"`. */
function readDisposition(header: string): Map<string, string> {
  const parameters = new Map<string, string>()
  let at = 0
  const skipSpace = () => {
    while (header[at] === ' ' || header[at] === '\t') at += 1
  }
  const until = (stops: string): string => {
    const from = at
    while (at < header.length && !stops.includes(header[at] ?? '')) at += 1
    return header.slice(from, at)
  }
  if (until('; \t').toLowerCase() !== 'form-data') refuse()
  for (skipSpace(); at < header.length; skipSpace()) {
    if (header[at] !== ';') refuse()
    at += 1
    skipSpace()
    if (at === header.length || header[at] === ';') continue
    const name = until('=; \t').toLowerCase()
    skipSpace()
    if (name === '' || header[at] !== '=') refuse()
    at += 1
    skipSpace()
    let value = ''
    if (header[at] === '"') {
      for (at += 1; header[at] !== '"'; at += 1) {
        if (at >= header.length) refuse()
        if (header[at] === '\\') {
          at += 1
          if (at >= header.length) refuse()
          if (header[at] !== '"' && header[at] !== '\\') value += '\\'
        }
        value += header[at]
      }
      at += 1
    } else value = until('; \t')
    if (parameters.has(name)) refuse()
    parameters.set(name, value)
  }
  return parameters
}
