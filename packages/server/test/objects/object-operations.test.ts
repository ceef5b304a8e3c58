import { createHash, randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { chunksOf } from '../storage/blobs/blob-contract.ts'
import { engines, inlineSize, type OpenedObjects, openObjects } from './object-data.ts'

const md5 = (bytes: Uint8Array) => createHash('md5').update(bytes).digest('hex')

/** Stores bytes under a key; `more` are other members of the object. */
function put(
  { objects, caller }: OpenedObjects,
  key: string,
  bytes: Uint8Array,
  more: Partial<Parameters<OpenedObjects['objects']['putObject']>[2]> = {},
) {
  return objects.putObject(caller, key, {
    ...{ body: chunksOf(bytes, 50_000), size: bytes.byteLength, isPublic: false, conditions: {} },
    ...{ declaredType: null },
    finish: () => ({ etag: md5(bytes), headers: { metadata: { a: 'b' } } }),
    ...more,
  })
}

/** Of a small object, which is stored with its row, and of one with a blob. */
const sizes = [inlineSize, 200_000]

describe.each(engines)('objects on %s', (_, openEngines) => {
  test('OK2 an object replaces the one with its key, whose bytes are deleted', async () => {
    const opened = await openObjects(openEngines)
    const { objects, bucketId, catalog } = opened
    const large: string[] = []
    for (const before of sizes)
      for (const after of sizes) {
        const key = `${before}/${after}`
        await put(opened, key, randomBytes(before))
        const bytes = randomBytes(after)
        const stored = await put(opened, key, bytes)
        const found = await objects.findObject(bucketId, key)
        expect(found).toMatchObject({ key, etag: md5(bytes), item: { id: stored.item.id, path: key } })
        expect((await opened.bytesOf(stored)).equals(bytes)).toBe(true)
        if (after > inlineSize) large.push(stored.item.id)
      }
    expect((await opened.stored()).toSorted()).toEqual(large.toSorted())
    expect(await catalog.bucket(bucketId)).toMatchObject({ items: 4, bytes: 2 * (inlineSize + 200_000) })
  })

  test('OK2, OK3 what is refused before, during or after its bytes changes nothing and leaves nothing', async () => {
    const opened = await openObjects(openEngines)
    const { objects, bucketId, caller } = opened
    const stored = await put(opened, 'a', randomBytes(9))
    const bytes = randomBytes(200_000)
    const failing = (): never => {
      throw new RangeError('wrong')
    }
    const refused = [
      [() => put(opened, 'a', bytes, { finish: failing }), { message: 'wrong' }],
      [
        () => put(opened, 'a', bytes, { body: chunksOf(bytes, 9_000, new Error('gone')) }),
        { message: 'gone' },
      ],
      [() => put(opened, 'a', bytes, { conditions: { ifNoneMatch: '*' } }), { code: 'precondition-failed' }],
      [
        () => put(opened, 'a', bytes, { conditions: { ifMatch: md5(bytes) } }),
        { code: 'precondition-failed' },
      ],
      [() => put(opened, 'b', bytes, { conditions: { ifMatch: '*' } }), { code: 'key-unknown' }],
      [() => put(opened, '_items/a', bytes), { code: 'key-reserved' }],
      [() => objects.setPublic(caller, '_items/a', true), { code: 'key-reserved' }],
      [() => objects.setPublic(caller, '_items/a', false), { code: 'key-unknown' }],
      [
        () => put({ ...opened, caller: { ...caller, scopes: new Set(['media:write']) } }, 'a', bytes),
        { code: 'scope-missing' },
      ],
    ] as const
    for (const [send, error] of refused) await expect(send()).rejects.toMatchObject(error)
    expect(await objects.findObject(bucketId, 'a')).toMatchObject({ item: { id: stored.item.id } })
    expect(await objects.findObject(bucketId, 'b')).toBeNull()
    expect(await opened.stored()).toEqual([])
  })

  test('OK3 of several that store an object only if its key is free, one succeeds', async () => {
    const opened = await openObjects(openEngines)
    for (const size of sizes) {
      const key = `new ${size}`
      const results = await Promise.allSettled(
        Array.from({ length: 4 }, () =>
          put(opened, key, randomBytes(size), { conditions: { ifNoneMatch: '*' } }),
        ),
      )
      const stored = results.flatMap((result) => (result.status === 'fulfilled' ? result.value.item.id : []))
      expect(stored).toHaveLength(1)
      expect((await opened.objects.findObject(opened.bucketId, key))?.item.id).toBe(stored[0])
      expect(await opened.stored()).toEqual(size > inlineSize ? stored : [])
    }
  })

  test('OK2, OK7, M11 objects are copied with their focus, also onto themselves, and deleted with their bytes', async () => {
    const opened = await openObjects(openEngines)
    const { objects, bucketId, caller } = opened
    const bytes = randomBytes(200_000)
    const object = await put(opened, 'a', bytes)
    const source = { bucketId, object }
    const options = { headers: null, isPublic: false, conditions: {}, algorithm: null }
    await opened.catalog.editItem(bucketId, object.item.id, { focus: 12_345 }, null)
    const copied = await objects.copyObject(caller, source, 'b', options)
    expect((await opened.catalog.item(copied.item.id))?.focus).toBe(12_345)
    expect((await opened.bytesOf(copied)).equals(bytes)).toBe(true)
    expect(copied).toMatchObject({ etag: object.etag, headers: { metadata: { a: 'b' } } })
    const edited = await objects.copyObject(caller, source, 'a', {
      ...options,
      headers: { metadata: { c: 'd' } },
    })
    expect(edited).toMatchObject({ item: { id: object.item.id }, headers: { metadata: { c: 'd' } } })
    await objects.deleteObject(caller, 'a')
    expect(await objects.findObject(bucketId, 'a')).toBeNull()
    expect(await opened.stored()).toEqual([copied.item.id])
    await objects.deleteObjects(caller, ['a', 'b', 'c'])
    expect(await opened.stored()).toEqual([])
  })
})
