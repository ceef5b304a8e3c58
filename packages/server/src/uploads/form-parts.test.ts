import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseFileHeaders, readFileHeaders, readParts } from './form-parts.ts'

const boundary = 'b'

/** Splits bytes into chunks of the given lengths, repeated. */
function* cut(bytes: Buffer, lengths: readonly number[]) {
  for (let at = 0, i = 0; at < bytes.length; i += 1) {
    const end = at + (lengths[i % lengths.length] ?? 1)
    yield bytes.subarray(at, end)
    at = end
  }
}

async function* arriving(chunks: Iterable<Buffer>) {
  yield* chunks
}

/** Reads the bodies of the parts, except those for which `skipped` returns true. */
async function bodies(
  chunks: Iterable<Buffer>,
  minStreamed: number,
  skipped: (part: number) => boolean = () => false,
) {
  const found: (string | null)[] = []
  for await (const parts of readParts(arriving(chunks), boundary, 1000, minStreamed))
    for (const { body } of parts) {
      if (skipped(found.length)) {
        found.push(null)
        continue
      }
      const received: Uint8Array[] = []
      for await (const chunk of chunksOf(body)) received.push(chunk)
      found.push(Buffer.concat(received).toString('latin1'))
    }
  return found
}

const chunksOf = (body: Uint8Array | AsyncIterable<Uint8Array>) =>
  body instanceof Uint8Array ? [body] : body

/** Bytes of a part that must have arrived before it is streamed: every part is streamed that does not arrive at once, and none. */
const minStreamed = fc.constantFrom(0, 16_384)

const formOf = (contents: readonly string[]) =>
  Buffer.from(`${contents.map((content) => `--b\r\nA: b\r\n\r\n${content}\r\n`).join('')}--b--\r\n`, 'latin1')

/** Text of the characters of boundaries that contains no boundary. */
const nearly = fc
  .array(fc.constantFrom('\r', '\n', '-', '--', '\r\n', '\r\n-', '\r\n--', 'b', 'x', '\0', '\xff'))
  .map((parts) => parts.join(''))
  .filter((text) => !/[\r\n]--b/.test(`\r\n${text}\r\n--`))
const lengths = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 })

test('U1 the parts do not depend on how the body is split into chunks', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(nearly), lengths, minStreamed, async (contents, cuts, min) => {
      expect(await bodies(cut(formOf(contents), cuts), min)).toEqual(contents)
    }),
    { numRuns: 1000 },
  )
})

test('U1 an unread part does not change the next one', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(nearly, fc.boolean())),
      lengths,
      minStreamed,
      async (parts, cuts, min) => {
        const found = await bodies(
          cut(formOf(parts.map(([text]) => text)), cuts),
          min,
          (i) => parts[i]?.[1] === true,
        )
        expect(found).toEqual(parts.map(([text, skipped]) => (skipped ? null : text)))
      },
    ),
  )
})

test('U1 a partly read part does not change the next one', async () => {
  const found: string[] = []
  const source = arriving(cut(formOf(['abcdefgh', 'ijklmnop']), [1]))
  for await (const parts of readParts(source, boundary, 2, 0))
    for (const { headers, body } of parts)
      for await (const chunk of chunksOf(body)) {
        found.push(`${headers} ${Buffer.from(chunk).toString().charAt(0)}`)
        break
      }
  expect(found).toEqual(['A: b a', 'A: b i'])
})

test('U10 a form that is truncated anywhere fails, and no truncated part is returned as complete', async () => {
  const contents = ['first', 'second']
  const whole = formOf(contents)
  for (let length = 1; length < whole.length - '\r\n'.length; length += 1) {
    const read = bodies([whole.subarray(0, length)], 0)
    const code = length < '--b'.length ? 'form-malformed' : 'upload-incomplete'
    await expect(read).rejects.toMatchObject({ code })
  }
})

test.each([
  { chunk: 3_000, parts: 'whole' },
  { chunk: 1_000, parts: 'streamed' },
  { chunk: 1, parts: 'streamed' },
])(
  'U1 parts of 3,000 bytes in chunks of $chunk are $parts: a part waits for one chunk at most',
  async ({ chunk, parts }) => {
    const form = formOf(Array.from({ length: 4 }, () => 'x'.repeat(3_000)))
    const kinds = new Set<string>()
    for await (const group of readParts(arriving(cut(form, [chunk])), boundary, 9))
      for (const { body } of group) kinds.add(body instanceof Uint8Array ? 'whole' : 'streamed')
    expect([...kinds]).toEqual([parts])
  },
)

test('U1 the source is read only as far as the current part needs', async () => {
  let asked = 0
  async function* source() {
    for (const chunk of cut(formOf(['x'.repeat(1000), 'y']), [100])) {
      asked += 1
      yield chunk
    }
  }
  for await (const [part] of readParts(source(), boundary, 2, 50)) {
    if (part) for await (const _ of chunksOf(part.body)) break
    break
  }
  expect(asked).toBe(1)
})

/** What a function returns, or the message of what it throws. */
function outcomeOf(read: () => unknown): unknown {
  try {
    return read()
  } catch (error) {
    return error instanceof Error ? error.message : error
  }
}

const both = (block: string) =>
  [readFileHeaders, parseFileHeaders].map((read) => outcomeOf(() => read(block, 'b')))

test.each([
  ['photo.jpg', 'image/jpeg'],
  ['two words.txt', 'text/plain'],
  ['a;b=c, (d).tar.gz', 'application/vnd.api+json'],
])('U1 the plain headers of a file named %j of type %j are read', (filename, declaredType) => {
  for (const name of ['Content-Disposition', 'content-disposition']) {
    const block = `${name}: form-data; name="file"; filename="${filename}"\r\nContent-Type: ${declaredType}`
    expect(both(block)).toEqual([
      { filename, declaredType },
      { filename, declaredType },
    ])
  }
})

const text = fc
  .array(
    fc.oneof(
      fc.constantFrom('"', '\\', '\\"', '%22', '%', '%0d', '\0', '\r', '\n', '\r\n', '\r\n ', ';', '=', ':'),
      fc.constantFrom('--b', '\r\n--b', 'a', ' ', '\t', '\u007f', '\u00e9', '\u0131', '\u017f'),
      fc.string({ maxLength: 4 }),
    ),
    { maxLength: 6 },
  )
  .map((parts) => parts.join(''))

/** Mostly the plain value, so that a block usually has one or two others. */
const mostly = (plain: string, ...others: fc.Arbitrary<string>[]) =>
  fc.oneof({ arbitrary: fc.constant(plain), weight: 6 }, ...others)
const other = (...values: string[]) => fc.constantFrom(...values)

const block = fc
  .tuple(
    mostly('Content-Disposition', other('CONTENT-disposition', 'Content-Dispositio', 'A')),
    mostly(': form-data; name="', other(': FORM-DATA; NAME="', ':form-data;name="', ': attachment; name="')),
    mostly('file', text),
    mostly(
      '"; filename="',
      other('"; filename="x"; filename="', '"; filename*=utf-8\'\'x; filename="', '"; a="'),
    ),
    fc.oneof(fc.constant('a.bin'), text),
    mostly('"\r\n', other('"\n', '"\r\nA: b\r\n', '"\r\n ', '" \r\n', '\r\n')),
    mostly('Content-Type: ', other('content-TYPE: ', 'Content-Type:', 'Content-Disposition: ', '')),
    mostly('image/png', other('text/plain; charset=utf-8', 'multipart/mixed', '', 'image', ' a/b'), text),
    mostly('', other(' ', '\r\nContent-Transfer-Encoding: base64', '\r\nContent-Type: a/b', '\r\n')),
  )
  .map((parts) => parts.join(''))

test('U1 the short way through the headers of a file returns and refuses what the complete one does', () => {
  fc.assert(
    fc.property(fc.oneof(block, text), (headers) => {
      const [short, complete] = both(headers)
      expect(short).toEqual(complete)
    }),
    { numRuns: 2000 },
  )
})
