import { createHash, randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { PartialUploadLost } from '../../src/storage/blobs/blobs.ts'
import type { Catalog } from '../../src/storage/catalog/catalog.ts'
import { recover } from '../../src/upkeep/recovery.ts'
import { chunksOf, readBytes } from '../storage/blobs/blob-contract.ts'
import { systemError, watchedFiles } from '../storage/blobs/watched-files.ts'
import { withMethods } from '../with-methods.ts'
import { temporaryData } from './temporary-media.ts'
import { openUpload, uploadsOf } from './temporary-uploads.ts'

describe('R6 offsets are durable', () => {
  test('a sync precedes every offset', async () => {
    const order: string[] = []
    const { files } = watchedFiles((call) => {
      if (/^(write|sync) (?!uploads$|blobs$)/.test(call)) order.push(call.split(' ')[0] ?? '')
    })
    await using data = await temporaryData(files)
    const moveUpload: Catalog['moveUpload'] = (...move) => {
      order.push(`offset ${move[2]}`)
      return data.catalog.moveUpload(...move)
    }
    const { append, id } = await openUpload(data, 100, { catalog: { moveUpload } })
    order.length = 0
    await append(id, 0, chunksOf(randomBytes(10)))
    await append(id, 10, chunksOf(randomBytes(10)))
    expect(order).toEqual(['write', 'sync', 'offset 10', 'write', 'sync', 'offset 20'])
  })

  test('the offset moves during a long chunk, by bytes and by time', async () => {
    await using data = await temporaryData()
    const offsets: number[] = []
    const moveUpload: Catalog['moveUpload'] = async (...move) => {
      offsets.push(move[2])
      return data.catalog.moveUpload(...move)
    }
    const megabyte = 1024 * 1024
    const { append, id, time } = await openUpload(data, 40 * megabyte, { catalog: { moveUpload } })
    async function* slow() {
      for (let at = 0; at < 3; at++) {
        time.now += 1_000
        yield new Uint8Array(100)
      }
      yield new Uint8Array(17 * megabyte)
      yield* chunksOf(new Uint8Array(16 * megabyte), megabyte)
      yield new Uint8Array(50)
    }
    await append(id, 0, slow())
    expect(offsets).toEqual([200, 300 + 17 * megabyte, 300 + 33 * megabyte, 350 + 33 * megabyte])
  })

  test('R12 a chunk that exceeds the upload is refused, also if a sync is due at the end of the upload', async () => {
    await using data = await temporaryData()
    const { append, id, time } = await openUpload(data, 200)
    async function* slow(last: Uint8Array) {
      for (let at = 0; at < 2; at++) {
        time.now += 1_000
        yield new Uint8Array(100)
      }
      yield last
    }
    await expect(append(id, 0, slow(new Uint8Array(1)))).rejects.toMatchObject({ code: 'file-too-large' })
    expect(await data.catalog.findUpload(id)).toMatchObject({ finished: false })
    expect((await append(id, 0, slow(new Uint8Array(0)))).upload).toMatchObject({
      finished: true,
      offset: 200,
    })
  })

  test('a failed sync ends the upload', async () => {
    let isFailing = false
    const { files } = watchedFiles((call) => {
      if (isFailing && call.startsWith('sync')) throw systemError('EIO')
    })
    await using data = await temporaryData(files)
    const { append, id, bucketId } = await openUpload(data, 100)
    isFailing = true
    await expect(append(id, 0, chunksOf(randomBytes(10)))).rejects.toThrow('synced')
    isFailing = false
    await expect(append(id, 0, chunksOf(randomBytes(100)))).rejects.toMatchObject({ code: 'upload-unknown' })
    expect(await data.catalog.bucket(bucketId)).toMatchObject({ reservedItems: 0, reservedBytes: 0 })
  })

  test('recovery lowers an offset to the size of the file', async () => {
    await using data = await temporaryData()
    const { append, id } = await openUpload(data, 100)
    await append(id, 0, chunksOf(randomBytes(10)))
    await data.blobs.partialUploads.remove(id)
    expect(await recover(data)).toMatchObject({ rewound: 1 })
    expect(await data.catalog.findUpload(id)).toMatchObject({ offset: 0 })
    expect((await append(id, 0, chunksOf(randomBytes(100)))).upload.finished).toBe(true)
  })
})

describe('R7 a chunk that counts completely or not at all', () => {
  test('a failed source does not move the offset, and the next chunk replaces its bytes', async () => {
    await using data = await temporaryData()
    const { append, id } = await openUpload(data, 20)
    const bytes = randomBytes(20)
    await append(id, 0, chunksOf(bytes.subarray(0, 5)))
    for (const length of [3, 15])
      await expect(append(id, 5, chunksOf(randomBytes(length), 1, new Error('gone')), true)).rejects.toThrow(
        'gone',
      )
    expect(await data.catalog.findUpload(id)).toMatchObject({ offset: 5, finished: false })
    const { item } = await append(id, 5, chunksOf(bytes.subarray(5)), true)
    expect(Buffer.from(item?.sha256 ?? [])).toEqual(createHash('sha256').update(bytes).digest())
  })
})

describe('R4 concurrent chunks', () => {
  test('R5 an upload that another process has finished stays, if its parts are missing for this one', async () => {
    await using data = await temporaryData()
    const partialUploads = withMethods(data.blobs.partialUploads, {
      async append() {
        await uploadsOf(data).append(id, 0, chunksOf(randomBytes(100)))
        throw new PartialUploadLost('the parts are missing')
      },
    })
    const { append, id } = await openUpload(data, 100, { blobs: { partialUploads } })
    const late = append(id, 0, chunksOf(randomBytes(100)))
    await expect(late).rejects.toMatchObject({ code: 'upload-offset-conflict' })
    expect(await data.catalog.findUpload(id)).toMatchObject({ finished: true })
  })

  test.each(['offset', 'length'] as const)(
    'a request gets a conflict, and no 404, if another process has changed the %s',
    async (changed) => {
      await using data = await temporaryData()
      const moveUpload: Catalog['moveUpload'] = async (...move) => {
        await data.catalog.moveUpload(...move)
        return data.catalog.moveUpload(...move)
      }
      const declareLength: Catalog['declareLength'] = async (...length) => {
        await data.catalog.declareLength(...length)
        return data.catalog.declareLength(...length)
      }
      const { append, declare, id } = await openUpload(data, null, {
        catalog: { moveUpload, declareLength },
      })
      const late = changed === 'offset' ? append(id, 0, chunksOf(randomBytes(10))) : declare(id, 100)
      await expect(late).rejects.toMatchObject({ code: 'upload-offset-conflict' })
    },
  )

  test('at most one is accepted, the others are offset conflicts, and the bytes are those of one', async () => {
    await using data = await temporaryData()
    const { append, id, bucketId } = await openUpload(data, 50_000)
    const bodies = [randomBytes(50_000), randomBytes(50_000)]
    const results = await Promise.allSettled(bodies.map((body) => append(id, 0, chunksOf(body, 100))))
    const refused = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []))
    for (const reason of refused) expect(reason).toMatchObject({ code: 'upload-offset-conflict' })
    expect(refused.length).toBeGreaterThanOrEqual(1)
    // The second request has ended the first one within its chunk, so that it is late itself.
    if (refused.length === 2) {
      const offset = Number(/offset (\d+)/.exec(`${refused[1]}`)?.[1])
      await append(id, offset, chunksOf(bodies[0]?.subarray(offset) ?? Buffer.of()))
    }
    const [itemId] = await data.listed(bucketId)
    const bytes = await readBytes(data.blobs, itemId as never)
    expect(bodies.some((body) => bytes?.equals(body))).toBe(true)
  })

  test('a chunk that hangs is ended by the next request, and its received bytes count', async () => {
    await using data = await temporaryData()
    const { append, id } = await openUpload(data, 20)
    const bytes = randomBytes(20)
    async function* stuck() {
      yield bytes.subarray(0, 8)
      await new Promise(() => undefined)
    }
    const first = append(id, 0, stuck())
    const refused = expect(first).rejects.toMatchObject({ code: 'upload-offset-conflict' })
    await expect(append(id, 0, chunksOf(bytes))).rejects.toThrow('offset 8')
    await refused
    const { item } = await append(id, 8, chunksOf(bytes.subarray(8)))
    expect(Buffer.from(item?.sha256 ?? [])).toEqual(createHash('sha256').update(bytes).digest())
  })
})
