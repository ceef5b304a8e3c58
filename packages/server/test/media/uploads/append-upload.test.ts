import { createHash, randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { PartialUploadLost } from '../../../src/blobs/partial-uploads.ts'
import type { Catalog } from '../../../src/catalog/catalog.ts'
import { Fault } from '../../../src/core/fault.ts'
import { recover } from '../../../src/media/recover.ts'
import { chunksOf, readBytes } from '../../blobs/blob-contract.ts'
import { systemError, watchedFiles } from '../../blobs/watched-files.ts'
import { temporaryMedia } from '../temporary-media.ts'
import { nothing, openUpload, uploadsOf } from './temporary-uploads.ts'

describe('R5 the end of an upload', () => {
  test('the last byte creates the item, and a repeated request returns the same item', async () => {
    await using media = await temporaryMedia()
    const { append, id, bucketId } = await openUpload(media, 2_500)
    const bytes = randomBytes(2_500)
    expect((await append(id, 0, chunksOf(bytes.subarray(0, 999)))).item).toBeNull()
    const { upload, item } = await append(id, 999, chunksOf(bytes.subarray(999)))
    expect(upload).toMatchObject({ offset: 2_500, finished: true, mediaId: item?.id })
    expect(item).toMatchObject({
      filename: 'a.txt',
      contentType: 'text/plain',
      size: 2_500,
      createdAt: 5_000,
    })
    expect(Buffer.from(item?.sha256 ?? [])).toEqual(createHash('sha256').update(bytes).digest())
    expect(await media.listed(bucketId)).toEqual([item?.id])
    expect(await readBytes(media.blobs, upload.mediaId)).toEqual(bytes)
    const again = await append(id, 2_500, nothing())
    expect(again).toMatchObject({ item: null, upload: { mediaId: item?.id, finished: true } })
    expect(await media.listed(bucketId)).toEqual([item?.id])
  })

  test('a small upload ends with its bytes in the catalog, and its file is removed', async () => {
    await using media = await temporaryMedia(undefined, 100)
    const { append, id, bucketId } = await openUpload(media, 100)
    const bytes = randomBytes(100)
    await append(id, 0, chunksOf(bytes.subarray(0, 60)))
    const { item } = await append(id, 60, chunksOf(bytes.subarray(60)))
    expect(await media.listed(bucketId)).toEqual([item?.id])
    const stored = item && (await media.catalog.media(item.id))
    const content = stored?.contentId ? await media.catalog.content(stored.contentId) : null
    expect(content && bytes.equals(content)).toBe(true)
    expect([await media.disk.parts(), await media.disk.stored()]).toEqual([[], []])
  })

  test('the chunk of a whole small upload is not written to a file', async () => {
    await using media = await temporaryMedia(undefined, 100)
    const partialUploads = {
      ...media.blobs.partialUploads,
      append: () => expect.unreachable('the upload is written to a file'),
    }
    const { append, id } = await openUpload(media, 100, { blobs: { partialUploads } })
    const bytes = randomBytes(100)
    const { item, upload } = await append(id, 0, chunksOf(bytes, 30))
    expect(upload).toMatchObject({ offset: 100, finished: true })
    const stored = item && (await media.catalog.media(item.id))
    const content = stored?.contentId ? await media.catalog.content(stored.contentId) : null
    expect(content && bytes.equals(content)).toBe(true)
  })

  test('R6 the bytes of a small upload count that arrived before its source failed, or ended', async () => {
    await using media = await temporaryMedia(undefined, 100)
    const bytes = randomBytes(100)
    for (const failure of [new Error('gone'), undefined]) {
      const { append, id } = await openUpload(media, 100)
      const sent = append(id, 0, chunksOf(bytes.subarray(0, 60), 25, failure))
      if (failure) await expect(sent).rejects.toThrow('gone')
      else await sent
      expect(await media.catalog.upload(id)).toMatchObject({ offset: 60, finished: false })
      const { item } = await append(id, 60, chunksOf(bytes.subarray(60)))
      const stored = item && (await media.catalog.media(item.id))
      const content = stored?.contentId ? await media.catalog.content(stored.contentId) : null
      expect(content && bytes.equals(content)).toBe(true)
    }
  })

  test('R7 nothing of a small upload counts whose checksum is wrong', async () => {
    await using media = await temporaryMedia(undefined, 100)
    const { append, id, bucketId } = await openUpload(media, 100)
    const sent = append(id, 0, chunksOf(randomBytes(100), 25, new Error('mismatch')), true)
    await expect(sent).rejects.toThrow('mismatch')
    expect(await media.catalog.upload(id)).toMatchObject({ offset: 0, finished: false })
    expect(await media.listed(bucketId)).toEqual([])
  })

  test('R12 a small upload with more bytes than its length is refused', async () => {
    await using media = await temporaryMedia(undefined, 100)
    const { append, id, bucketId } = await openUpload(media, 50)
    await expect(append(id, 0, chunksOf(randomBytes(60), 25))).rejects.toMatchObject({
      code: 'file-too-large',
    })
    expect(await media.listed(bucketId)).toEqual([])
  })

  test('R6 the first bytes of a small upload are synced, and its memory is released, while its client sends nothing', async () => {
    await using media = await temporaryMedia()
    const { append, id } = await openUpload(media, 2_500)
    const bytes = randomBytes(2_500)
    const stalled = Promise.withResolvers<void>()
    async function* source() {
      yield bytes.subarray(0, 999)
      await stalled.promise
      yield bytes.subarray(999)
    }
    const appended = append(id, 0, source())
    await expect.poll(() => media.disk.parts(), { timeout: 60_000 }).toHaveLength(1)
    stalled.resolve()
    expect((await appended).upload).toMatchObject({ offset: 2_500, finished: true })
  })

  test('R6 the first bytes of a slow small upload are synced before the others arrive', async () => {
    await using media = await temporaryMedia(undefined, 100)
    const { append, id, time } = await openUpload(media, 100)
    const bytes = randomBytes(100)
    const offsets: (number | undefined)[] = []
    async function* slow() {
      for (let sent = 0; sent < 100; sent += 25) {
        yield bytes.subarray(sent, sent + 25)
        time.now += 1_500
        offsets.push((await media.catalog.upload(id))?.offset)
      }
    }
    const { item } = await append(id, 0, slow())
    expect(offsets).toEqual([0, 0, 50, 50])
    const stored = item && (await media.catalog.media(item.id))
    expect(stored?.contentId).not.toBeNull()
  })

  test('an upload without bytes becomes an item with bytes in the catalog', async () => {
    await using media = await temporaryMedia(undefined, 100)
    const { append, id } = await openUpload(media, 0)
    const { item } = await append(id, 0, nothing())
    expect(item && (await media.catalog.media(item.id))?.contentId).not.toBeNull()
    expect(await media.disk.parts()).toEqual([])
  })

  test('a small upload that a crash interrupts before its commit continues; after it, the next start removes its file', async () => {
    await using media = await temporaryMedia(undefined, 100)
    const bytes = randomBytes(100)
    const crash = () => Promise.reject(new Error('killed'))
    const [start, end] = [bytes.subarray(0, 60), bytes.subarray(60)]
    const before = await openUpload(media, 100, { catalog: { finishUpload: crash } })
    await before.append(before.id, 0, chunksOf(start))
    await expect(before.append(before.id, 60, chunksOf(end))).rejects.toThrow('killed')
    const partialUploads = { ...media.blobs.partialUploads, remove: crash }
    const after = await openUpload(media, 100, { blobs: { partialUploads } })
    await after.append(after.id, 0, chunksOf(start))
    const { item } = await after.append(after.id, 60, chunksOf(end))
    expect(await media.disk.parts()).toHaveLength(2)
    await recover(media)
    expect(await media.disk.parts()).toEqual([before.id])
    const again = await uploadsOf(media).append(before.id, 60, chunksOf(end))
    expect(again.upload.finished).toBe(true)
    expect(await media.listed(after.bucketId)).toEqual([item?.id, again.item?.id])
    expect(await media.disk.parts()).toEqual([])
  })

  test('a small upload that is removed while it ends leaves neither an item nor a file', async () => {
    await using media = await temporaryMedia(undefined, 100)
    const { append, id, bucketId } = await openUpload(media, 10, {
      catalog: { finishUpload: async () => false },
    })
    await expect(append(id, 0, chunksOf(randomBytes(10)))).rejects.toMatchObject({ code: 'upload-unknown' })
    expect(await media.listed(bucketId)).toEqual([])
    expect(await media.disk.parts()).toEqual([])
  })

  test('no upload is visible as complete without its item', async () => {
    await using media = await temporaryMedia()
    const order: string[] = []
    const watch = {
      moveUpload: async (...move: Parameters<Catalog['moveUpload']>) => {
        order.push(`offset ${move[2]}`)
        return media.catalog.moveUpload(...move)
      },
      finishUpload: async (...end: Parameters<Catalog['finishUpload']>) => {
        const before = await media.catalog.upload(end[0])
        order.push(`item at offset ${before?.offset}, ${(await media.disk.stored()).length} in place`)
        return media.catalog.finishUpload(...end)
      },
    }
    const { append, id } = await openUpload(media, 20, { catalog: watch })
    await append(id, 0, chunksOf(randomBytes(15)))
    await append(id, 15, chunksOf(randomBytes(5)))
    expect(order).toEqual(['offset 15', 'item at offset 15, 1 in place'])
  })

  test('an upload is complete if the client disconnects after the last byte', async () => {
    await using media = await temporaryMedia()
    const { append, id, bucketId } = await openUpload(media, 10)
    expect((await append(id, 0, chunksOf(randomBytes(10), 3, new Error('gone')))).upload.finished).toBe(true)
    expect(await media.listed(bucketId)).toHaveLength(1)
  })

  test('a failed commit is retried with the last chunk', async () => {
    await using media = await temporaryMedia()
    let refuse = true
    const finishUpload: Catalog['finishUpload'] = async (...end) => {
      if (refuse) throw new Fault('quota-exceeded', 'No.')
      return media.catalog.finishUpload(...end)
    }
    const { append, id, bucketId } = await openUpload(media, 20, { catalog: { finishUpload } })
    const bytes = randomBytes(20)
    await append(id, 0, chunksOf(bytes.subarray(0, 15)))
    const end = () => append(id, 15, chunksOf(bytes.subarray(15)))
    await expect(end()).rejects.toMatchObject({ code: 'quota-exceeded' })
    expect(await media.catalog.upload(id)).toMatchObject({ offset: 15, finished: false })
    refuse = false
    const { item } = await end()
    expect(Buffer.from(item?.sha256 ?? [])).toEqual(createHash('sha256').update(bytes).digest())
    expect(await media.listed(bucketId)).toEqual([item?.id])
    expect(await media.disk.stored()).toHaveLength(1)
  })

  test.each([false, true])(
    'after a crash between rename and commit (committed: %s) the upload can be finished',
    async (committed) => {
      await using media = await temporaryMedia()
      const finishUpload: Catalog['finishUpload'] = async (...end) => {
        if (committed) await media.catalog.finishUpload(...end)
        throw new Error('the process was killed')
      }
      const { append, id, bucketId } = await openUpload(media, 20, { catalog: { finishUpload } })
      const bytes = randomBytes(20)
      await append(id, 0, chunksOf(bytes.subarray(0, 15)))
      await expect(append(id, 15, chunksOf(bytes.subarray(15)))).rejects.toThrow('killed')

      await recover(media)
      const after = uploadsOf(media)
      const upload = await media.catalog.upload(id)
      expect(upload).toMatchObject({ offset: committed ? 20 : 15, finished: committed })
      if (!committed) await after.append(id, 15, chunksOf(bytes.subarray(15)))
      const [listed, ...more] = await media.listed(bucketId)
      expect([listed, more]).toEqual([upload?.mediaId, []])
      if (upload) expect(await readBytes(media.blobs, upload.mediaId)).toEqual(bytes)
    },
  )
})

describe('R6 offsets are durable', () => {
  test('a sync precedes every offset', async () => {
    const order: string[] = []
    const { files } = watchedFiles((call) => {
      if (/^(write|sync) (?!uploads$|blobs$)/.test(call)) order.push(call.split(' ')[0] ?? '')
    })
    await using media = await temporaryMedia(files)
    const moveUpload: Catalog['moveUpload'] = (...move) => {
      order.push(`offset ${move[2]}`)
      return media.catalog.moveUpload(...move)
    }
    const { append, id } = await openUpload(media, 100, { catalog: { moveUpload } })
    order.length = 0
    await append(id, 0, chunksOf(randomBytes(10)))
    await append(id, 10, chunksOf(randomBytes(10)))
    expect(order).toEqual(['write', 'sync', 'offset 10', 'write', 'sync', 'offset 20'])
  })

  test('the offset moves during a long chunk, by bytes and by time', async () => {
    await using media = await temporaryMedia()
    const offsets: number[] = []
    const moveUpload: Catalog['moveUpload'] = async (...move) => {
      offsets.push(move[2])
      return media.catalog.moveUpload(...move)
    }
    const megabyte = 1024 * 1024
    const { append, id, time } = await openUpload(media, 40 * megabyte, { catalog: { moveUpload } })
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

  test('a failed sync ends the upload', async () => {
    let isFailing = false
    const { files } = watchedFiles((call) => {
      if (isFailing && call.startsWith('sync')) throw systemError('EIO')
    })
    await using media = await temporaryMedia(files)
    const { append, id, bucketId } = await openUpload(media, 100)
    isFailing = true
    await expect(append(id, 0, chunksOf(randomBytes(10)))).rejects.toThrow('synced')
    isFailing = false
    await expect(append(id, 0, chunksOf(randomBytes(100)))).rejects.toMatchObject({ code: 'upload-unknown' })
    expect(await media.catalog.bucket(bucketId)).toMatchObject({ reservedItems: 0, reservedBytes: 0 })
  })

  test('recovery lowers an offset to the size of the file', async () => {
    await using media = await temporaryMedia()
    const { append, id } = await openUpload(media, 100)
    await append(id, 0, chunksOf(randomBytes(10)))
    await media.blobs.partialUploads.remove(id)
    expect(await recover(media)).toMatchObject({ rewound: 1 })
    expect(await media.catalog.upload(id)).toMatchObject({ offset: 0 })
    expect((await append(id, 0, chunksOf(randomBytes(100)))).upload.finished).toBe(true)
  })
})

describe('R7 a chunk that counts completely or not at all', () => {
  test('a failed source does not move the offset, and the next chunk replaces its bytes', async () => {
    await using media = await temporaryMedia()
    const { append, id } = await openUpload(media, 20)
    const bytes = randomBytes(20)
    await append(id, 0, chunksOf(bytes.subarray(0, 5)))
    for (const length of [3, 15])
      await expect(append(id, 5, chunksOf(randomBytes(length), 1, new Error('gone')), true)).rejects.toThrow(
        'gone',
      )
    expect(await media.catalog.upload(id)).toMatchObject({ offset: 5, finished: false })
    const { item } = await append(id, 5, chunksOf(bytes.subarray(5)), true)
    expect(Buffer.from(item?.sha256 ?? [])).toEqual(createHash('sha256').update(bytes).digest())
  })
})

describe('R4 concurrent chunks', () => {
  test('R5 an upload that another process has finished stays, if its parts are missing for this one', async () => {
    await using media = await temporaryMedia()
    const partialUploads: typeof media.blobs.partialUploads = {
      ...media.blobs.partialUploads,
      async append() {
        await uploadsOf(media).append(id, 0, chunksOf(randomBytes(100)))
        throw new PartialUploadLost('the parts are missing')
      },
    }
    const { append, id } = await openUpload(media, 100, { blobs: { partialUploads } })
    const late = append(id, 0, chunksOf(randomBytes(100)))
    await expect(late).rejects.toMatchObject({ code: 'upload-offset-conflict' })
    expect(await media.catalog.upload(id)).toMatchObject({ finished: true })
  })

  test.each(['offset', 'length'] as const)(
    'a request gets a conflict, and no 404, if another process has changed the %s',
    async (changed) => {
      await using media = await temporaryMedia()
      const moveUpload: Catalog['moveUpload'] = async (...move) => {
        await media.catalog.moveUpload(...move)
        return media.catalog.moveUpload(...move)
      }
      const declareLength: Catalog['declareLength'] = async (...length) => {
        await media.catalog.declareLength(...length)
        return media.catalog.declareLength(...length)
      }
      const { append, declare, id } = await openUpload(media, null, {
        catalog: { moveUpload, declareLength },
      })
      const late = changed === 'offset' ? append(id, 0, chunksOf(randomBytes(10))) : declare(id, 100)
      await expect(late).rejects.toMatchObject({ code: 'upload-offset-conflict' })
    },
  )

  test('one is accepted, the other is an offset conflict', async () => {
    await using media = await temporaryMedia()
    const { append, id, bucketId } = await openUpload(media, 50_000)
    const bodies = [randomBytes(50_000), randomBytes(50_000)]
    const results = await Promise.allSettled(bodies.map((body) => append(id, 0, chunksOf(body, 100))))
    expect(results.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    expect(results.find(({ status }) => status === 'rejected')).toMatchObject({
      reason: { code: 'upload-offset-conflict' },
    })
    const [mediaId] = await media.listed(bucketId)
    const bytes = await readBytes(media.blobs, mediaId as never)
    expect(bodies.some((body) => bytes?.equals(body))).toBe(true)
  })

  test('a chunk that hangs is ended by the next request, and its received bytes count', async () => {
    await using media = await temporaryMedia()
    const { append, id } = await openUpload(media, 20)
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
