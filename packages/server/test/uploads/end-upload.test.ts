import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { Fault } from '../../src/core/faults.ts'
import { service } from '../../src/core/token-rules.ts'
import type { Catalog } from '../../src/storage/catalog/catalog.ts'
import { chunksOf } from '../storage/blobs/blob-contract.ts'
import { newItem, newUpload, withBytes } from '../storage/catalog/samples.ts'
import { type TemporaryData, temporaryData } from './temporary-media.ts'
import { expiry, openUpload } from './temporary-uploads.ts'

/** Expired uploads; `remove` is called before the removal of each. */
async function openExpired(
  data: TemporaryData,
  count: number,
  remove: (id: string, tried: readonly string[]) => void,
  change: Partial<Catalog> = {},
) {
  const tried: string[] = []
  const { id, bucketId, time, removeExpiredUploads } = await openUpload(data, 20, {
    catalog: {
      ...change,
      async removeUpload(upload, ...conditions) {
        tried.push(upload)
        remove(upload, tried)
        return data.catalog.removeUpload(upload, ...conditions)
      },
    },
  })
  for (let more = 1; more < count; more += 1)
    await data.catalog.createUpload(newUpload(bucketId, { expiresAt: time.now + expiry + more }))
  time.now += expiry * 2
  const left = async () => (await data.catalog.uploadsOf(bucketId)).length
  return { first: id, tried, left, removeExpiredUploads }
}

describe('R8 uploads expire', () => {
  test('an expired upload is removed with its bytes and its reservation; received bytes renew the expiry', async () => {
    await using data = await temporaryData()
    const { append, id, bucketId, time, removeExpiredUploads } = await openUpload(data, 20)
    await append(id, 0, chunksOf(randomBytes(5)))
    time.now += expiry - 1
    expect(await removeExpiredUploads()).toEqual({ uploads: 0, requests: 0 })
    await append(id, 5, chunksOf(randomBytes(5)))
    time.now += expiry - 1
    expect(await removeExpiredUploads()).toEqual({ uploads: 0, requests: 0 })
    time.now += 1
    expect(await removeExpiredUploads()).toEqual({ uploads: 1, requests: 0 })
    expect(await data.catalog.findUpload(id)).toBeNull()
    expect(await data.catalog.bucket(bucketId)).toMatchObject({ reservedItems: 0, reservedBytes: 0 })
    expect(await data.disk.parts()).toEqual([])
  })

  test('an upload with a request in progress does not expire', async () => {
    await using data = await temporaryData()
    const { append, id, time, removeExpiredUploads } = await openUpload(data, 20)
    const go = Promise.withResolvers<void>()
    async function* slow() {
      yield randomBytes(10)
      await go.promise
      yield randomBytes(10)
    }
    const appended = append(id, 0, slow())
    time.now += expiry * 2
    expect(await removeExpiredUploads()).toEqual({ uploads: 0, requests: 0 })
    go.resolve()
    expect((await appended).upload.finished).toBe(true)
  })

  test('an upload whose expiry another server extends while the sweep removes it stays', async () => {
    await using data = await temporaryData()
    const extended = await openUpload(data, 20, {
      catalog: {
        async findUpload(id) {
          const found = await data.catalog.findUpload(id)
          await data.catalog.moveUpload(id, 0, 5, expiry * 10)
          return found
        },
      },
    })
    extended.time.now += expiry
    expect(await extended.removeExpiredUploads()).toEqual({ uploads: 0, requests: 0 })
    expect(await data.catalog.findUpload(extended.id)).toMatchObject({ offset: 5 })
  })

  test('uploads that cannot be removed, however many, keep neither other uploads nor expired keys, and all failures are reported', async () => {
    await using data = await temporaryData()
    const broken = 130
    const forgotten: number[] = []
    const { left, removeExpiredUploads } = await openExpired(
      data,
      broken + 2,
      (_, { length }) => {
        if (length <= broken) throw new Error(`broken ${length}`)
      },
      {
        async forgetRequests(now) {
          forgotten.push(now)
          throw new Error('keys')
        },
      },
    )
    const error = await removeExpiredUploads().catch((error: unknown) => error)
    expect(error).toMatchObject({
      message: expect.stringContaining(`${broken + 1} times`),
      errors: [new Error('keys'), new Error('broken 1'), new Error('broken 2')],
    })
    expect([await left(), forgotten.length]).toEqual([broken, 1])
  })

  test.each(['catalog-busy', 'catalog-unavailable', 'storage-unavailable'] as const)(
    'an outage (%s) ends the sweep at once',
    async (code) => {
      await using data = await temporaryData()
      const { tried, left, removeExpiredUploads } = await openExpired(data, 3, () => {
        throw new Fault(code, 'later')
      })
      await expect(removeExpiredUploads()).rejects.toMatchObject({ code })
      expect([tried.length, await left()]).toEqual([1, 3])
    },
  )

  test('O5 a stop ends the sweep after the upload in progress', async () => {
    await using data = await temporaryData()
    const { tried, left, removeExpiredUploads } = await openExpired(data, 3, () => undefined)
    expect(await removeExpiredUploads(() => tried.length > 0)).toEqual({ uploads: 1, requests: 0 })
    expect(await left()).toBe(2)
  })

  test('an expired finished upload is removed, and its item stays', async () => {
    await using data = await temporaryData()
    const { append, id, bucketId, time, removeExpiredUploads } = await openUpload(data, 5)
    const { item } = await append(id, 0, chunksOf(randomBytes(5)))
    time.now += expiry
    expect(await removeExpiredUploads()).toEqual({ uploads: 1, requests: 0 })
    expect(await data.listed(bucketId)).toEqual([item?.id])
    expect(await data.disk.stored()).toHaveLength(1)
  })
})

describe('R9 ending an upload', () => {
  test('its bytes are removed, also those of a failed attempt to finish', async () => {
    await using data = await temporaryData()
    const finishUpload = () => Promise.reject(new Fault('quota-exceeded', 'No.'))
    const { append, remove, id } = await openUpload(data, 5, { catalog: { finishUpload } })
    await expect(append(id, 0, chunksOf(randomBytes(5)))).rejects.toThrow(Fault)
    await remove(id, () => undefined, service)
    expect([await data.disk.parts(), await data.disk.stored()]).toEqual([[], []])
    await expect(remove(id, () => undefined, service)).rejects.toMatchObject({ code: 'upload-unknown' })
  })

  test('the removal of an upload that another server finishes at the same time removes its item, if the token may delete it', async () => {
    await using data = await temporaryData()
    const removed: string[] = []
    const item = withBytes(newItem({ size: 5 }))
    const { remove, id } = await openUpload(data, 5, {
      catalog: {
        async findUpload(id) {
          const found = await data.catalog.findUpload(id)
          if (found?.finished === false) await data.catalog.finishUpload(id, item, expiry * 10)
          return found
        },
      },
      removeItem: async (_bucketId, id) => void removed.push(id),
    })
    const refuse = () => {
      throw new Fault('scope-missing', 'No.')
    }
    await expect(remove(id, refuse, service)).rejects.toMatchObject({ code: 'scope-missing' })
    expect(await remove(id, () => undefined, service)).toEqual({ item: true })
    expect(removed).toEqual([item.id])
    expect(await data.catalog.findUpload(id)).toBeNull()
  })

  test('a finished upload is removed only with the permission to delete its item', async () => {
    await using data = await temporaryData()
    const { append, remove, id, bucketId } = await openUpload(data, 5)
    await append(id, 0, chunksOf(randomBytes(5)))
    const refuse = () => {
      throw new Fault('scope-missing', 'No.')
    }
    await expect(remove(id, refuse, service)).rejects.toMatchObject({ code: 'scope-missing' })
    expect(await data.listed(bucketId)).toHaveLength(1)
    expect(await data.catalog.findUpload(id)).not.toBeNull()
  })
})
