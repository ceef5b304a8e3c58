import { createHash, randomBytes } from 'node:crypto'
import { describe, expect, test, vi } from 'vitest'
import { newChecksum } from '../../src/core/checksums.ts'
import type { PartSource } from '../../src/objects/multipart-operations.ts'
import { chunksOf } from '../storage/blobs/blob-contract.ts'
import { engines, type OpenedObjects, openObjects } from './object-data.ts'

const partSize = 5 * 1024 ** 2
const sizes = (...all: readonly number[]) => all.map((size) => ({ size }))
const md5 = (bytes: Uint8Array) => createHash('md5').update(bytes).digest('hex')

const source = (bytes: Uint8Array): PartSource => ({
  body: chunksOf(bytes, 1_000_000),
  size: bytes.byteLength,
  finish: () => ({ etag: md5(bytes), checksum: crc(bytes) }),
})

function crc(bytes: Uint8Array): string {
  const checksum = newChecksum('CRC32')
  checksum.update(bytes)
  return checksum.digest().toString('base64')
}

/** Two texts of bytes with one MD5 (Wang and Yu, 2005). They differ in one bit of six bytes. */
function sameMd5(): readonly [Buffer, Buffer] {
  const one = Buffer.from(
    [
      'd131dd02c5e6eec4693d9a0698aff95c2fcab58712467eab4004583eb8fb7f89',
      '55ad340609f4b30283e488832571415a085125e8f7cdc99fd91dbdf280373c5b',
      'd8823e3156348f5bae6dacd436c919c6dd53e2b487da03fd02396306d248cda0',
      'e99f33420f577ee8ce54b67080a80d1ec69821bcb6a8839396f9652b6ff72a70',
    ].join(''),
    'hex',
  )
  const other = Buffer.from(one)
  for (const place of [19, 45, 59, 83, 109, 123]) other[place] = (other[place] ?? 0) ^ 0x80
  return [one, other]
}

const key = 'films/sea.mp4'
const object = { headers: { metadata: { a: 'b' } }, isPublic: true, checksum: null }

async function uploadParts(
  { first, caller }: OpenedObjects,
  sizes: readonly number[],
  options: Parameters<OpenedObjects['first']['create']>[2] = object,
) {
  const id = await first.create(caller, key, options)
  const upload = await first.find(caller, key, id)
  const bytes = sizes.map((size) => randomBytes(size))
  const stored = await Promise.all(
    bytes.map((some, index) => first.putPart(caller, upload, index + 1, source(some))),
  )
  return {
    id,
    upload,
    bytes,
    complete: {
      parts: stored.map(({ number, etag }) => ({ number, etag })),
      conditions: {},
    },
  }
}

describe.each(engines)('uploads in parts on %s', (_, openEngines) => {
  const openData = () => openObjects(openEngines)

  test('MU8 an object consists of the named parts in order, and the others are deleted', async () => {
    const opened = await openData()
    const { first, caller, catalog, bucketId, objects } = opened
    const { id, upload, bytes, complete } = await uploadParts(opened, [partSize, partSize + 1, 7])
    await first.putPart(caller, upload, 9, source(randomBytes(3)))
    const done = await first.complete(caller, key, id, complete)
    expect((await opened.bytesOf(done)).equals(Buffer.concat(bytes))).toBe(true)
    const etag = `${createHash('md5')
      .update(Buffer.from(bytes.map(md5).join(''), 'hex'))
      .digest('hex')}-3`
    expect(done).toMatchObject({ key, etag, parts: sizes(partSize, partSize + 1, 7), isPublic: true })
    expect(await objects.findObject(bucketId, key)).toMatchObject({ etag, headers: { metadata: { a: 'b' } } })
    expect(await catalog.bucket(bucketId)).toMatchObject({ items: 1, reservedItems: 0, reservedBytes: 0 })
    await expect(first.find(caller, key, id)).rejects.toMatchObject({ code: 'upload-unknown' })
    await expect(first.abort(caller, key, id)).rejects.toMatchObject({ code: 'upload-unknown' })
    expect(await opened.stored()).toEqual([done.item.id])
  })

  test('MU8 wrong lists of parts are refused, and the upload stays', async () => {
    const opened = await openData()
    const { first, caller } = opened
    const { id, complete } = await uploadParts(opened, [partSize - 1, 5])
    const [one, two] = complete.parts
    if (!one || !two) throw new Error('no parts')
    const refusals = [
      [[], 'part-invalid'],
      [[two, one], 'part-order'],
      [[one, { ...one, etag: two.etag }], 'part-invalid'],
      [[one, { ...two, etag: one.etag }], 'part-invalid'],
      [[{ ...one, number: 3 }], 'part-invalid'],
      [[one, two], 'part-too-small'],
      [[{ ...one, etag: 'x' }], 'part-invalid'],
    ] as const
    for (const [parts, code] of refusals)
      await expect(first.complete(caller, key, id, { ...complete, parts })).rejects.toMatchObject({ code })
    const wrongSize = { ...complete, parts: [one], expected: { size: 1 } }
    await expect(first.complete(caller, key, id, wrongSize)).rejects.toMatchObject({ code: 'part-invalid' })
    await expect(first.complete(caller, key, 'none', { ...complete, parts: [] })).rejects.toMatchObject({
      code: 'upload-unknown',
    })
    // As other services: of those with one number, the last one counts.
    const twice = [{ ...one, etag: two.etag }, one]
    expect((await first.complete(caller, key, id, { ...complete, parts: twice })).parts).toMatchObject(
      sizes(partSize - 1),
    )
  })

  test('MU8 the checksum of an object is that of its bytes, or that of the checksums of its parts', async () => {
    const opened = await openData()
    const { first, caller } = opened
    for (const type of ['FULL_OBJECT', 'COMPOSITE'] as const) {
      const checksum = { algorithm: 'CRC32', type } as const
      const { id, bytes, complete } = await uploadParts(opened, [partSize, 9], { ...object, checksum })
      const value =
        type === 'FULL_OBJECT'
          ? crc(Buffer.concat(bytes))
          : `${crc(Buffer.concat(bytes.map((some) => Buffer.from(crc(some), 'base64'))))}-2`
      const { algorithm } = checksum
      for (const expected of [
        { checksum: { algorithm, value: 'AAAAAA==' } },
        { checksum: { algorithm: 'CRC32C', value } as const },
        { checksum: { algorithm, value }, type: 'OTHER' },
        { type: 'OTHER' },
      ])
        await expect(first.complete(caller, key, id, { ...complete, expected })).rejects.toMatchObject({
          code: 'checksum-mismatch',
        })
      const expected = { checksum: { algorithm, value }, type }
      const done = await first.complete(caller, key, id, { ...complete, expected })
      expect(done.headers.checksum).toEqual({ ...checksum, value })
      expect(done.parts).toEqual(bytes.map((some) => ({ size: some.byteLength, checksum: crc(some) })))
    }
  })

  test('MU8 a completion with a wrong list of parts is refused, also while one with the right list is in progress', async () => {
    const opened = await openData()
    const { first, caller } = opened
    const checksum = { algorithm: 'CRC32', type: 'FULL_OBJECT' } as const
    const { id, complete } = await uploadParts(opened, [partSize, 9], { ...object, checksum })
    const wrong = { ...complete, parts: complete.parts.map((part) => ({ ...part, checksum: 'AAAAAA==' })) }
    const [done, refused] = await Promise.allSettled(
      [complete, wrong].map((options) => first.complete(caller, key, id, options)),
    )
    expect(done?.status).toBe('fulfilled')
    expect(refused).toMatchObject({ status: 'rejected', reason: { code: 'part-invalid' } })
  })

  test('MU9 a repeated completion returns the same object for a day, also if it was deleted since', async () => {
    const opened = await openData()
    const { first, second, caller, objects } = opened
    const { id, complete } = await uploadParts(opened, [5])
    const done = await first.complete(caller, key, id, complete)
    await objects.deleteObject(caller, key)
    for (const one of [first, second]) {
      const again = await one.complete(caller, key, id, complete)
      expect(again).toMatchObject({ etag: done.etag, parts: sizes(5), item: { id: done.item.id } })
    }
    const [part] = complete.parts
    const others = { ...complete, parts: [{ number: 1, etag: part?.etag.replaceAll(/./g, '0') ?? '' }] }
    await expect(first.complete(caller, key, id, others)).rejects.toMatchObject({ code: 'upload-unknown' })
    opened.advance(86_400_001)
    await expect(first.complete(caller, key, id, complete)).rejects.toMatchObject({ code: 'upload-unknown' })
    expect(await opened.sweep()).toBe(1)
    expect(await opened.stored()).toEqual([])
  })

  test('MU9 of completions, aborts and parts at the same time in two processes, one wins', async () => {
    for (let round = 0; round < 6; round++) {
      const opened = await openData()
      const { first, second, caller, catalog, bucketId, objects } = opened
      const { id, upload, bytes, complete } = await uploadParts(opened, [partSize, 11])
      const again = bytes[1] ?? Buffer.alloc(0)
      const [one, other, aborted] = await Promise.allSettled([
        first.complete(caller, key, id, complete),
        second.complete(caller, key, id, complete),
        round % 3 === 0 ? first.abort(caller, key, id) : Promise.reject(new Error('not tried')),
        second.putPart(caller, upload, 2, source(round % 2 === 0 ? again : randomBytes(11))),
      ])
      const found = await objects.findObject(bucketId, key)
      if (found === null) {
        // Aborted, or a part was replaced by another one.
        expect([one.status, other.status]).toEqual(['rejected', 'rejected'])
      } else {
        expect(aborted.status).toBe('rejected')
        expect((await opened.bytesOf(found)).equals(Buffer.concat(bytes))).toBe(true)
        for (const result of [one, other])
          if (result.status === 'fulfilled') expect(result.value.item.id).toBe(found.item.id)
      }
      const rest = await catalog.findMultipart(bucketId, id)
      const isOpen = rest !== null && rest.completed === null
      expect(await catalog.bucket(bucketId)).toMatchObject({
        items: found === null ? 0 : 1,
        reservedItems: isOpen ? 1 : 0,
      })
      const parts = isOpen ? (await catalog.listParts(upload.id, 0, 9)).map(({ itemId }) => itemId) : []
      expect((await opened.stored()).toSorted()).toEqual(
        [...parts, ...(found ? [found.item.id] : [])].toSorted(),
      )
    }
  })

  test.each(['equal', 'other'] as const)(
    'MU9 a part that is replaced by %s bytes with the same etag, while its bytes are joined, is the one that the object has',
    async (kind) => {
      const opened = await openData()
      const { first, caller, catalog } = opened
      const { id, upload, bytes, complete } = await uploadParts(opened, [partSize])
      const [one = Buffer.alloc(0)] = bytes
      const [before, other] = sameMd5()
      const after = kind === 'equal' ? before : other
      const { number, etag } = await first.putPart(caller, upload, 2, source(before))
      complete.parts.push({ number, etag })
      const commit = vi.spyOn(catalog, 'completeMultipart')
      commit.mockImplementationOnce(async (...input) => {
        await first.putPart(caller, upload, 2, source(after))
        return await catalog.completeMultipart(...input)
      })
      const done = await first.complete(caller, key, id, complete)
      // The call above, that within it, and the second attempt.
      expect(commit).toHaveBeenCalledTimes(3)
      expect((await opened.bytesOf(done)).equals(Buffer.concat([one, after]))).toBe(true)
      expect(await opened.stored()).toEqual([done.item.id])
    },
  )

  test('MU9 a completion of parts that others replace again and again is refused, and the upload stays', async () => {
    const opened = await openData()
    const { first, caller, catalog } = opened
    const { id, upload, bytes, complete } = await uploadParts(opened, [11])
    const [only = Buffer.alloc(0)] = bytes
    const original = catalog.completeMultipart.bind(catalog)
    const commit = vi.spyOn(catalog, 'completeMultipart').mockImplementation(async (...input) => {
      await first.putPart(caller, upload, 1, source(only))
      return await original(...input)
    })
    await expect(first.complete(caller, key, id, complete)).rejects.toMatchObject({ code: 'part-invalid' })
    commit.mockRestore()
    expect((await first.complete(caller, key, id, complete)).etag).toMatch(/-1$/)
  })

  test('MU1 a part whose bytes are refused at their end, or fail, leaves nothing', async () => {
    const opened = await openData()
    const { first, caller } = opened
    const id = await first.create(caller, key, object)
    const upload = await first.find(caller, key, id)
    const failing = {
      ...source(randomBytes(9)),
      finish() {
        throw new RangeError('wrong')
      },
    }
    await expect(first.putPart(caller, upload, 1, failing)).rejects.toThrow('wrong')
    for (const number of [0, 10_001, 1.5, Number.NaN])
      await expect(first.putPart(caller, upload, number, source(randomBytes(9)))).rejects.toMatchObject({
        code: 'part-number-invalid',
      })
    await first.abort(caller, key, id)
    await expect(first.putPart(caller, upload, 1, source(randomBytes(9)))).rejects.toMatchObject({
      code: 'upload-unknown',
    })
    expect(await opened.stored()).toEqual([])
  })

  test('MU10 a range of an object becomes a part', async () => {
    const opened = await openData()
    const { first, caller, bucketId } = opened
    const { id, bytes, complete } = await uploadParts(opened, [partSize + 10])
    const copied = await first.complete(caller, key, id, complete)
    const copyId = await first.create(caller, 'copy', object)
    const upload = await first.find(caller, 'copy', copyId)
    const from = (range: { start: number; end: number } | null, number = 1) =>
      first.copyPart(caller, upload, number, { bucketId, object: copied, range })
    await expect(from({ start: 5, end: partSize + 10 })).rejects.toMatchObject({ code: 'range-invalid' })
    const parts = [await from(null), await from({ start: 3, end: 5 }, 2)]
    const done = await first.complete(caller, 'copy', copyId, {
      ...complete,
      parts: parts.map(({ number, etag }) => ({ number, etag })),
    })
    const [whole = Buffer.alloc(0)] = bytes
    expect((await opened.bytesOf(done)).equals(Buffer.concat([whole, whole.subarray(3, 6)]))).toBe(true)
  })
})
