import fc from 'fast-check'
import { expect, test } from 'vitest'
import { readParts } from './read-parts.ts'

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
