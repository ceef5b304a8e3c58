import { parseArgs } from 'node:util'
import fc from 'fast-check'
import { Fault } from '../../packages/server/src/core/faults.ts'
import { readFilesBetween } from '../../packages/server/src/uploads/upload-routes.ts'
import { type ReferenceFile, referenceFiles } from './reference-form.ts'

/** Figures of a run. */
export interface FormRounds {
  readonly seed: number
  readonly rounds: number
  /** Mutated forms that were read exactly as by the reference reader, and those that were refused. */
  readonly read: number
  readonly refused: number
}

const boundaries = fc.constantFrom(
  'b',
  'bb',
  "a'()+_,-./:=?z",
  '----WebKitFormBoundary7MA4YWxk',
  'b: c',
  'x'.repeat(70),
)

/** Content from parts of boundaries and line endings. */
const content = (boundary: string) =>
  fc
    .array(
      fc.constantFrom(
        '\r',
        '\n',
        '-',
        '--',
        '\r\n',
        '\r\n-',
        '\r\n--',
        boundary,
        `--${boundary.slice(0, -1)}`,
        'x',
        '\0',
        '\xff',
        ' ',
      ),
      { maxLength: 12 },
    )
    .map((fragments) => fragments.join(''))
    .filter((text) => !hasBoundaryLine(`\r\n${text}\r\n`, boundary))

const hasBoundaryLine = (text: string, boundary: string): boolean =>
  [`\r--${boundary}`, `\n--${boundary}`].some((start) => text.includes(start))

interface WrittenPart {
  readonly head: string
  readonly filename: string | null
  readonly content: string
}

const fileNames = fc.stringMatching(/^[ -!#-[\]-~]{0,12}$/).filter((name) => !/%(22|0[ad])/i.test(name))
const types = fc.constantFrom('', 'Content-Type: text/plain\r\n', 'content-type:application/octet-stream\r\n')
const encodings = fc.constantFrom('', 'Content-Transfer-Encoding: binary\r\n', 'X-Other: y;\r\n\tz\r\n')

const parts = (boundary: string): fc.Arbitrary<WrittenPart> =>
  fc
    .record({
      filename: fc.option(fileNames),
      content: content(boundary),
      type: types,
      encoding: encodings,
      fold: fc.constantFrom(' ', '\r\n ', '\t'),
    })
    .map(({ filename, content: bytes, type, encoding, fold }) => {
      const declared = filename === null ? '' : type
      const name = filename === null ? '' : `;${fold}filename="${filename}"`
      return {
        head: `${encoding}Content-Disposition: form-data; name="f"${name}\r\n${declared}`,
        filename,
        content: bytes,
      }
    })

/** A form as RFC 2046 defines it, and its files. */
const forms = boundaries.chain((boundary) =>
  fc
    .record({
      preamble: fc.constantFrom('', '\r\n', 'text\r\n'),
      epilogue: fc.constantFrom('', '\r\n', '\r\ntext\r\n'),
      padding: fc.constantFrom('', ' ', '\t '),
      written: fc.array(parts(boundary), { minLength: 1, maxLength: 4 }),
    })
    .map(({ preamble, epilogue, padding, written }) => ({
      boundary,
      body: `${preamble}${written
        .map(({ head, content: bytes }) => `--${boundary}${padding}\r\n${head}\r\n${bytes}\r\n`)
        .join('')}--${boundary}--${epilogue}`,
      files: written
        .filter(({ filename, content: bytes }) => filename !== null && filename + bytes !== '')
        .map(({ filename, content: bytes }) => ({ filename, bytes })),
    })),
)

const inserted = (boundary: string) =>
  fc.constantFrom(
    '\r\n',
    '\r',
    '\n',
    '\0',
    '-',
    '--',
    ' ',
    '"',
    ';',
    '\\',
    boundary,
    `--${boundary}`,
    `\r\n--${boundary}`,
    `\n--${boundary}\r\n`,
    `\r\n--${boundary}\r\n`,
    `\r\n--${boundary}--`,
    `\r\n--${boundary}--\r\n`,
    'Content-Disposition: form-data; name="g"; filename="h"\r\n',
    'Content-Disposition: form-data; name="g"\r\n',
    'Content-Type: multipart/mixed; boundary=z\r\n',
    'Content-Type: image/png\r\n',
    'Content-Transfer-Encoding: base64\r\n',
    '; filename*0="a"',
    '; filename="again"',
    "; filename*=UTF-8''x",
    '\r\n ',
  )

/** A position, the number of bytes removed there, and their replacement; null repeats the removed bytes. */
const mutations = (boundary: string) =>
  fc.array(
    fc.record({
      at: fc.nat(10_000),
      removed: fc.constantFrom(0, 0, 1, 2, 4, 40, 10_000),
      text: fc.option(inserted(boundary), { freq: 6 }),
    }),
    { minLength: 1, maxLength: 3 },
  )

const mutated = forms.chain(({ boundary, body }) =>
  mutations(boundary).map((changes) => ({
    boundary,
    body: changes.reduce((text, { at, removed, text: put }) => {
      const from = at % (text.length + 1)
      const taken = text.slice(from, from + removed)
      return text.slice(0, from) + (put ?? taken + taken) + text.slice(from + removed)
    }, body),
  })),
)

const chunkLengths = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 8 })

/** Each chunk is overwritten once the next one is requested, as the service's source does. */
async function* arriving(body: string, lengths: readonly number[]) {
  const bytes = Buffer.from(body, 'latin1')
  for (let at = 0, i = 0; at < bytes.length; i += 1) {
    const end = Math.min(bytes.length, at + (lengths[i % lengths.length] ?? 1))
    const chunk = Buffer.from(bytes.subarray(at, end))
    yield chunk
    chunk.fill('?')
    at = end
  }
}

/** The files that the service reads from a form; the code of the fault if it refuses the form. */
async function readFiles(
  body: string,
  boundary: string,
  lengths: readonly number[],
  minStreamed?: number | undefined,
): Promise<ReferenceFile[] | string> {
  const files: ReferenceFile[] = []
  try {
    for await (const group of readFilesBetween(boundary, arriving(body, lengths), { minStreamed }))
      for (const file of group) {
        const chunks: Buffer[] = []
        for await (const chunk of file.body instanceof Uint8Array ? [file.body] : file.body)
          chunks.push(Buffer.from(chunk))
        files.push({ filename: file.sent.filename, bytes: Buffer.concat(chunks).toString('latin1') })
      }
    return files
  } catch (error) {
    if (error instanceof Fault) return error.code === 'form-without-file' ? [] : error.code
    throw error
  }
}

/** Throws if the result is another one when parts are streamed, when they are joined from chunks, and when the form is one chunk. */
async function readAllWays(body: string, boundary: string, lengths: readonly number[]) {
  const [streamed, joined, atOnce] = [
    await readFiles(body, boundary, lengths, 0),
    await readFiles(body, boundary, lengths),
    await readFiles(body, boundary, [body.length]),
  ]
  if (shown(streamed) !== shown(atOnce) || shown(joined) !== shown(atOnce))
    throw new Error(`read ${shown(atOnce)} at once, ${shown(joined)} joined, ${shown(streamed)} streamed`)
  return streamed
}

const shown = (files: readonly ReferenceFile[] | string | null) => JSON.stringify(files)
const readBody = (files: readonly ReferenceFile[]) => files.map(({ bytes }) => bytes)

/**
 * Written forms are read exactly, however they are cut into chunks. Mutated forms are refused, or read exactly as by the
 * reference reader. Throws where that does not hold, with the seed and the smallest form that shows it.
 */
export async function fuzzForms(rounds: number, seed = Date.now() % 2 ** 31): Promise<FormRounds> {
  await fc.assert(
    fc.asyncProperty(forms, chunkLengths, async ({ boundary, body, files }, lengths) => {
      const found = await readAllWays(body, boundary, lengths)
      if (shown(found) !== shown(files)) throw new Error(`read ${shown(found)} of ${shown(files)}`)
      const reference = referenceFiles(body, boundary)
      if (shown(reference) !== shown(files)) throw new Error(`the reference read ${shown(reference)}`)
    }),
    { numRuns: rounds, seed },
  )
  let read = 0
  let refused = 0
  await fc.assert(
    fc.asyncProperty(mutated, chunkLengths, async ({ boundary, body }, lengths) => {
      const found = await readAllWays(body, boundary, lengths)
      if (typeof found === 'string') {
        refused += 1
        return
      }
      read += 1
      const reference = referenceFiles(body, boundary)
      if (reference === null) throw new Error(`read ${shown(found)} of a form that the reference refuses`)
      if (JSON.stringify(readBody(found)) !== JSON.stringify(readBody(reference)))
        throw new Error(`read ${shown(found)} of ${shown(reference)}`)
    }),
    { numRuns: rounds, seed },
  )
  return { seed, rounds, read, refused }
}

// `node test/fuzz/forms.ts --rounds 100000 --seed 1`: the long form of forms.test.ts.
if (import.meta.main) {
  const { values } = parseArgs({ options: { rounds: { type: 'string' }, seed: { type: 'string' } } })
  const seed = values.seed === undefined ? undefined : Number(values.seed)
  console.log(await fuzzForms(Number(values.rounds ?? 100_000), seed))
}
