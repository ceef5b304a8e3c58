import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { Fault } from '../../src/core/faults.ts'
import { service } from '../../src/core/tokens.ts'
import { chunksOf } from '../storage/blobs/blob-contract.ts'
import { newUpload } from '../storage/catalog/samples.ts'
import { temporaryData } from './temporary-media.ts'
import { expiry, openUpload } from './temporary-uploads.ts'

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
    expect(await data.catalog.upload(id)).toBeNull()
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

  test('an upload that cannot be removed keeps neither other uploads nor expired keys', async () => {
    await using data = await temporaryData()
    const broken: string[] = []
    const { id, bucketId, time, removeExpiredUploads } = await openUpload(data, 20, {
      catalog: {
        async removeUpload(upload) {
          if (broken.includes(upload)) throw new Error('broken')
          return data.catalog.removeUpload(upload)
        },
      },
    })
    broken.push(id)
    const others = Array.from({ length: 3 }, () => newUpload(bucketId, { expiresAt: time.now + expiry }))
    for (const upload of others) await data.catalog.createUpload(upload)
    time.now += expiry * 2
    await expect(removeExpiredUploads()).rejects.toThrow('broken')
    const left = await data.catalog.uploadsOf(bucketId)
    expect(left.map((upload) => upload.id)).toEqual([id])
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

  test('a finished upload is removed only with the permission to delete its item', async () => {
    await using data = await temporaryData()
    const { append, remove, id, bucketId } = await openUpload(data, 5)
    await append(id, 0, chunksOf(randomBytes(5)))
    const refuse = () => {
      throw new Fault('scope-missing', 'No.')
    }
    await expect(remove(id, refuse, service)).rejects.toMatchObject({ code: 'scope-missing' })
    expect(await data.listed(bucketId)).toHaveLength(1)
    expect(await data.catalog.upload(id)).not.toBeNull()
  })
})
