import { createHash, randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { Fault } from '../../src/core/faults.ts'
import type { Catalog } from '../../src/storage/catalog/catalog.ts'
import { recover } from '../../src/upkeep/recovery.ts'
import { chunksOf, readBytes } from '../storage/blobs/blob-contract.ts'
import { withMethods } from '../with-methods.ts'
import { temporaryData } from './temporary-media.ts'
import { nothing, openUpload, uploadsOf } from './temporary-uploads.ts'

describe('R5 the end of an upload', () => {
  test('the last byte creates the item, and a repeated request returns the same item', async () => {
    await using data = await temporaryData()
    const { append, id, bucketId } = await openUpload(data, 2_500)
    const bytes = randomBytes(2_500)
    expect((await append(id, 0, chunksOf(bytes.subarray(0, 999)))).item).toBeNull()
    const { upload, item } = await append(id, 999, chunksOf(bytes.subarray(999)))
    expect(upload).toMatchObject({ offset: 2_500, finished: true, itemId: item?.id })
    expect(item).toMatchObject({
      filename: 'a.txt',
      contentType: 'text/plain',
      size: 2_500,
      createdAt: 5_000,
    })
    expect(Buffer.from(item?.sha256 ?? [])).toEqual(createHash('sha256').update(bytes).digest())
    expect(await data.listed(bucketId)).toEqual([item?.id])
    expect(await readBytes(data.blobs, upload.itemId)).toEqual(bytes)
    const again = await append(id, 2_500, nothing())
    expect(again).toMatchObject({ item: null, upload: { itemId: item?.id, finished: true } })
    expect(await data.listed(bucketId)).toEqual([item?.id])
  })

  test('a small upload ends with its bytes in the catalog, and its file is removed', async () => {
    await using data = await temporaryData(undefined, 100)
    const { append, id, bucketId } = await openUpload(data, 100)
    const bytes = randomBytes(100)
    await append(id, 0, chunksOf(bytes.subarray(0, 60)))
    const { item } = await append(id, 60, chunksOf(bytes.subarray(60)))
    expect(await data.listed(bucketId)).toEqual([item?.id])
    const stored = item && (await data.catalog.item(item.id))
    const content = stored?.contentId ? await data.catalog.content(stored.contentId) : null
    expect(content && bytes.equals(content)).toBe(true)
    expect([await data.disk.parts(), await data.disk.stored()]).toEqual([[], []])
  })

  test('the chunk of a whole small upload is not written to a file', async () => {
    await using data = await temporaryData(undefined, 100)
    const partialUploads = withMethods(data.blobs.partialUploads, {
      append: () => expect.unreachable('the upload is written to a file'),
    })
    const { append, id } = await openUpload(data, 100, { blobs: { partialUploads } })
    const bytes = randomBytes(100)
    const { item, upload } = await append(id, 0, chunksOf(bytes, 30))
    expect(upload).toMatchObject({ offset: 100, finished: true })
    const stored = item && (await data.catalog.item(item.id))
    const content = stored?.contentId ? await data.catalog.content(stored.contentId) : null
    expect(content && bytes.equals(content)).toBe(true)
  })

  test('R6 the bytes of a small upload count that arrived before its source failed, or ended', async () => {
    await using data = await temporaryData(undefined, 100)
    const bytes = randomBytes(100)
    for (const failure of [new Error('gone'), undefined]) {
      const { append, id } = await openUpload(data, 100)
      const sent = append(id, 0, chunksOf(bytes.subarray(0, 60), 25, failure))
      if (failure) await expect(sent).rejects.toThrow('gone')
      else await sent
      expect(await data.catalog.findUpload(id)).toMatchObject({ offset: 60, finished: false })
      const { item } = await append(id, 60, chunksOf(bytes.subarray(60)))
      const stored = item && (await data.catalog.item(item.id))
      const content = stored?.contentId ? await data.catalog.content(stored.contentId) : null
      expect(content && bytes.equals(content)).toBe(true)
    }
  })

  test('R7 nothing of a small upload counts whose checksum is wrong', async () => {
    await using data = await temporaryData(undefined, 100)
    const { append, id, bucketId } = await openUpload(data, 100)
    const sent = append(id, 0, chunksOf(randomBytes(100), 25, new Error('mismatch')), true)
    await expect(sent).rejects.toThrow('mismatch')
    expect(await data.catalog.findUpload(id)).toMatchObject({ offset: 0, finished: false })
    expect(await data.listed(bucketId)).toEqual([])
  })

  test('R12 a small upload with more bytes than its length is refused', async () => {
    await using data = await temporaryData(undefined, 100)
    const { append, id, bucketId } = await openUpload(data, 50)
    await expect(append(id, 0, chunksOf(randomBytes(60), 25))).rejects.toMatchObject({
      code: 'file-too-large',
    })
    expect(await data.listed(bucketId)).toEqual([])
  })

  test('R6 the first bytes of a small upload are synced, and its memory is released, while its client sends nothing', async () => {
    await using data = await temporaryData()
    const { append, id } = await openUpload(data, 2_500)
    const bytes = randomBytes(2_500)
    const stalled = Promise.withResolvers<void>()
    async function* source() {
      yield bytes.subarray(0, 999)
      await stalled.promise
      yield bytes.subarray(999)
    }
    const appended = append(id, 0, source())
    await expect.poll(() => data.disk.parts(), { timeout: 60_000 }).toHaveLength(1)
    stalled.resolve()
    expect((await appended).upload).toMatchObject({ offset: 2_500, finished: true })
  })

  test('R6 the first bytes of a slow small upload are synced before the others arrive', async () => {
    await using data = await temporaryData(undefined, 100)
    const { append, id, time } = await openUpload(data, 100)
    const bytes = randomBytes(100)
    const offsets: (number | undefined)[] = []
    async function* slow() {
      for (let sent = 0; sent < 100; sent += 25) {
        yield bytes.subarray(sent, sent + 25)
        time.now += 1_500
        offsets.push((await data.catalog.findUpload(id))?.offset)
      }
    }
    const { item } = await append(id, 0, slow())
    expect(offsets).toEqual([0, 0, 50, 50])
    const stored = item && (await data.catalog.item(item.id))
    expect(stored?.contentId).not.toBeNull()
  })

  test('an upload without bytes becomes an item with bytes in the catalog', async () => {
    await using data = await temporaryData(undefined, 100)
    const { append, id } = await openUpload(data, 0)
    const { item } = await append(id, 0, nothing())
    expect(item && (await data.catalog.item(item.id))?.contentId).not.toBeNull()
    expect(await data.disk.parts()).toEqual([])
  })

  test('a small upload that a crash interrupts before its commit continues; after it, the next start removes its file', async () => {
    await using data = await temporaryData(undefined, 100)
    const bytes = randomBytes(100)
    const crash = () => Promise.reject(new Error('killed'))
    const [start, end] = [bytes.subarray(0, 60), bytes.subarray(60)]
    const before = await openUpload(data, 100, { catalog: { finishUpload: crash } })
    await before.append(before.id, 0, chunksOf(start))
    await expect(before.append(before.id, 60, chunksOf(end))).rejects.toThrow('killed')
    const partialUploads = withMethods(data.blobs.partialUploads, { remove: crash })
    const after = await openUpload(data, 100, { blobs: { partialUploads } })
    await after.append(after.id, 0, chunksOf(start))
    const { item } = await after.append(after.id, 60, chunksOf(end))
    expect(await data.disk.parts()).toHaveLength(2)
    await recover(data)
    expect(await data.disk.parts()).toEqual([before.id])
    const again = await uploadsOf(data).append(before.id, 60, chunksOf(end))
    expect(again.upload.finished).toBe(true)
    expect(await data.listed(after.bucketId)).toEqual([item?.id, again.item?.id])
    expect(await data.disk.parts()).toEqual([])
  })

  test('a small upload that is removed while it ends leaves neither an item nor a file', async () => {
    await using data = await temporaryData(undefined, 100)
    const { append, id, bucketId } = await openUpload(data, 10, {
      catalog: { finishUpload: async () => false },
    })
    await expect(append(id, 0, chunksOf(randomBytes(10)))).rejects.toMatchObject({ code: 'upload-unknown' })
    expect(await data.listed(bucketId)).toEqual([])
    expect(await data.disk.parts()).toEqual([])
  })

  test('no upload is visible as complete without its item', async () => {
    await using data = await temporaryData()
    const order: string[] = []
    const watch = {
      moveUpload: async (...move: Parameters<Catalog['moveUpload']>) => {
        order.push(`offset ${move[2]}`)
        return data.catalog.moveUpload(...move)
      },
      finishUpload: async (...end: Parameters<Catalog['finishUpload']>) => {
        const before = await data.catalog.findUpload(end[0])
        order.push(`item at offset ${before?.offset}, ${(await data.disk.stored()).length} in place`)
        return data.catalog.finishUpload(...end)
      },
    }
    const { append, id } = await openUpload(data, 20, { catalog: watch })
    await append(id, 0, chunksOf(randomBytes(15)))
    await append(id, 15, chunksOf(randomBytes(5)))
    expect(order).toEqual(['offset 15', 'item at offset 15, 1 in place'])
  })

  test('an upload is complete if the client disconnects after the last byte', async () => {
    await using data = await temporaryData()
    const { append, id, bucketId } = await openUpload(data, 10)
    expect((await append(id, 0, chunksOf(randomBytes(10), 3, new Error('gone')))).upload.finished).toBe(true)
    expect(await data.listed(bucketId)).toHaveLength(1)
  })

  test('a failed commit is retried with the last chunk', async () => {
    await using data = await temporaryData()
    let refuse = true
    const finishUpload: Catalog['finishUpload'] = async (...end) => {
      if (refuse) throw new Fault('quota-exceeded', 'No.')
      return data.catalog.finishUpload(...end)
    }
    const { append, id, bucketId } = await openUpload(data, 20, { catalog: { finishUpload } })
    const bytes = randomBytes(20)
    await append(id, 0, chunksOf(bytes.subarray(0, 15)))
    const end = () => append(id, 15, chunksOf(bytes.subarray(15)))
    await expect(end()).rejects.toMatchObject({ code: 'quota-exceeded' })
    expect(await data.catalog.findUpload(id)).toMatchObject({ offset: 15, finished: false })
    refuse = false
    const { item } = await end()
    expect(Buffer.from(item?.sha256 ?? [])).toEqual(createHash('sha256').update(bytes).digest())
    expect(await data.listed(bucketId)).toEqual([item?.id])
    expect(await data.disk.stored()).toHaveLength(1)
  })

  test.each([false, true])(
    'after a crash between rename and commit (committed: %s) the upload can be finished',
    async (committed) => {
      await using data = await temporaryData()
      const finishUpload: Catalog['finishUpload'] = async (...end) => {
        if (committed) await data.catalog.finishUpload(...end)
        throw new Error('the process was killed')
      }
      const { append, id, bucketId } = await openUpload(data, 20, { catalog: { finishUpload } })
      const bytes = randomBytes(20)
      await append(id, 0, chunksOf(bytes.subarray(0, 15)))
      await expect(append(id, 15, chunksOf(bytes.subarray(15)))).rejects.toThrow('killed')

      await recover(data)
      const after = uploadsOf(data)
      const upload = await data.catalog.findUpload(id)
      expect(upload).toMatchObject({ offset: committed ? 20 : 15, finished: committed })
      if (!committed) await after.append(id, 15, chunksOf(bytes.subarray(15)))
      const [listed, ...more] = await data.listed(bucketId)
      expect([listed, more]).toEqual([upload?.itemId, []])
      if (upload) expect(await readBytes(data.blobs, upload.itemId)).toEqual(bytes)
    },
  )
})
