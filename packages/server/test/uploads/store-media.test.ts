import { createHash, randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { Fault } from '../../src/core/faults.ts'
import { service } from '../../src/core/token-rules.ts'
import type { Catalog } from '../../src/storage/catalog/catalog.ts'
import type { BucketId } from '../../src/storage/catalog/records.ts'
import { storeOperations } from '../../src/uploads/commit.ts'
import { chunksOf, readBytes } from '../storage/blobs/blob-contract.ts'
import { systemError, watchedFiles } from '../storage/blobs/watched-files.ts'
import { storedItem } from '../storage/catalog/samples.ts'
import { file, incoming, type TemporaryData, temporaryData } from './temporary-media.ts'

const at = Date.UTC(2026, 0, 2, 3, 4, 5)
const unnamed = { filename: null, declaredType: null }

function storing(data: TemporaryData, change: Partial<Catalog> = {}, maxFileSize = 1e9) {
  const catalog = { ...data.catalog, ...change }
  const { storeItems: store } = storeOperations({ ...data, catalog, maxFileSize, now: () => at })
  type Request = Parameters<typeof store>
  return async (bucketId: BucketId, files: Request[1], options?: Pick<Request[2], 'key'>) =>
    (await store({ bucketId, removesMetadata: false, limits: null }, files, { ...options, by: service }))
      .items
}

/** The state that is required after a refused request. */
async function expectNothing(data: TemporaryData): Promise<void> {
  expect(await data.listed(await data.bucket('default'))).toEqual([])
  expect(await data.disk.temporary()).toEqual([])
  expect(await data.disk.stored()).toEqual([])
  // A Blob's file is closed in the background after its last read.
  await expect.poll(() => data.disk.openFiles()).toEqual([])
}

describe('storing', () => {
  test('U1, L10: several files are stored, returned and listed in the order sent', async () => {
    await using data = await temporaryData()
    const bucketId = await data.bucket('default')
    const contents = Array.from({ length: 9 }, (_, index) => randomBytes(index * 1000))
    const stored = await storing(data)(bucketId, incoming(...contents.map((bytes) => file(bytes))))
    expect(await data.listed(bucketId)).toEqual(stored.map(({ id }) => id))
    for (const [index, bytes] of contents.entries()) {
      const item = stored[index]
      if (item === undefined) throw new Error('an item is missing')
      expect(item).toMatchObject({ size: bytes.length, createdAt: at, filename: null, width: null })
      expect(Buffer.from(item.sha256 ?? [])).toEqual(createHash('sha256').update(bytes).digest())
      expect(await readBytes(data.blobs, item.id)).toEqual(bytes)
      const row = await data.catalog.item(item.id)
      // What is stored also says where its bytes are: null for a file.
      expect({ ...row, bytes: null, sha256: Buffer.from(row?.sha256 ?? []) }).toEqual(
        storedItem({ ...item, bucketId, sha256: Buffer.from(item.sha256 ?? []) }),
      )
    }
    expect(await data.disk.temporary()).toEqual([])
  })

  test('U5: an empty file is stored', async () => {
    await using data = await temporaryData()
    const bucketId = await data.bucket('default')
    const [item] = await storing(data)(bucketId, incoming(file(new Uint8Array(0), 'empty.txt', 'text/plain')))
    expect(item).toMatchObject({
      size: 0,
      filename: 'empty.txt',
      contentType: 'text/plain',
      extension: 'txt',
    })
  })

  test('a request without files adds no items', async () => {
    await using data = await temporaryData()
    expect(await storing(data)(await data.bucket('default'), incoming())).toEqual([])
    await expectNothing(data)
  })

  test('U7, U8: the bytes determine the type, and the file name is cleaned', async () => {
    await using data = await temporaryData()
    const png = Buffer.from(
      'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9',
      'base64',
    )
    const [item] = await storing(data)(
      await data.bucket('default'),
      incoming(file(png, '../../etc/a\r\n.html', 'text/html')),
    )
    expect(item).toMatchObject({ filename: 'a.html', contentType: 'image/png', extension: 'png' })
  })

  test('a file is requested only after the previous one is read completely', async () => {
    await using data = await temporaryData()
    const order: string[] = []
    async function* chunks(name: string): AsyncGenerator<Uint8Array> {
      order.push(`${name} begins`)
      yield randomBytes(10)
      order.push(`${name} ends`)
    }
    async function* files() {
      for (const name of ['first', 'second']) {
        order.push(`${name} is requested`)
        yield [{ sent: unnamed, body: chunks(name) }]
      }
    }
    await storing(data)(await data.bucket('default'), files())
    expect(order).toEqual(
      ['first', 'second'].flatMap((name) => [`${name} is requested`, `${name} begins`, `${name} ends`]),
    )
  })

  test('all bytes are committed before the single transaction of all rows', async () => {
    await using data = await temporaryData()
    const commits: [kept: number, temporary: number, items: number][] = []
    const addItems: Catalog['addItems'] = async (bucketId, items) => {
      commits.push([(await data.disk.stored()).length, (await data.disk.temporary()).length, items.length])
      await data.catalog.addItems(bucketId, items)
    }
    const files = Array.from({ length: 12 }, () => file(randomBytes(10)))
    await storing(data, { addItems })(await data.bucket('default'), incoming(...files))
    expect(commits).toEqual([[12, 0, 12]])
  })
})

describe('small and large files', () => {
  const smallAndLarge = [10, 101, 0, 100, 5_000].map((size) => randomBytes(size))
  const request = () => incoming(...smallAndLarge.map((bytes) => file(bytes)))

  test('U1, U2: one transaction stores the rows of all files and the bytes of the small ones', async () => {
    await using data = await temporaryData(undefined, 100)
    const bucketId = await data.bucket('default')
    const commits: (number | null)[][] = []
    const addItems: Catalog['addItems'] = (id, items) => {
      commits.push(items.map(({ bytes }) => bytes?.length ?? null))
      return data.catalog.addItems(id, items)
    }
    const stored = await storing(data, { addItems })(bucketId, request())
    expect(commits).toEqual([[10, null, 0, 100, null]])
    expect(await data.listed(bucketId)).toEqual(stored.map(({ id }) => id))
    expect(await data.disk.stored()).toHaveLength(2)
    for (const [index, { id }] of stored.entries()) {
      const row = await data.catalog.item(id)
      const bytes = row?.contentId
        ? await data.catalog.content(row.contentId)
        : await readBytes(data.blobs, id)
      expect(bytes && smallAndLarge[index]?.equals(bytes)).toBe(true)
    }
  })

  test('U2: a commit that fails stores neither small nor large files', async () => {
    await using data = await temporaryData(undefined, 100)
    const addItems = () => Promise.reject(new Fault('storage-full', 'No.'))
    const bucketId = await data.bucket('default')
    await expect(storing(data, { addItems })(bucketId, request())).rejects.toThrow('No.')
    await expectNothing(data)
  })

  test('I1: a repeated request stores nothing, and its content is compared by all files', async () => {
    await using data = await temporaryData(undefined, 100)
    const bucketId = await data.bucket('default')
    const [token] = await data.catalog.listTokens('default')
    if (!token) throw new Error('no token')
    const key = { tokenId: token.id, key: 'k' }
    const store = storing(data)
    const first = await store(bucketId, request(), { key })
    expect((await store(bucketId, request(), { key })).map(({ id }) => id)).toEqual(first.map(({ id }) => id))
    expect(await data.disk.stored()).toHaveLength(2)
    const other = incoming(...smallAndLarge.map((bytes) => file(bytes)), file(randomBytes(3)))
    await expect(store(bucketId, other, { key })).rejects.toMatchObject({ code: 'idempotency-key-reused' })
    expect(await data.listed(bucketId)).toHaveLength(5)
  })
})

describe('U2: all or none', () => {
  const broken = { sent: unnamed, body: chunksOf(randomBytes(9000), 1000, new Error('gone')) }

  test('U10: if the source of a file fails, the files before it are not stored', async () => {
    await using data = await temporaryData()
    const files = incoming(file(randomBytes(10)), file(randomBytes(5000)), broken, file(randomBytes(10)))
    await expect(storing(data)(await data.bucket('default'), files)).rejects.toThrow('gone')
    await expectNothing(data)
  })

  test('U6: if a file is one byte above the limit, no file is stored', async () => {
    await using data = await temporaryData()
    const files = incoming(file(randomBytes(100)), file(randomBytes(101)))
    await expect(storing(data, {}, 100)(await data.bucket('default'), files)).rejects.toMatchObject({
      code: 'file-too-large',
    })
    await expectNothing(data)
  })

  test('U10: if a form is cut off after its files, no file is stored', async () => {
    await using data = await temporaryData()
    const failure = new Fault('form-malformed', 'The form ended early.')
    const files = incoming(file(randomBytes(10)), file(randomBytes(10)), failure)
    await expect(storing(data)(await data.bucket('default'), files)).rejects.toBe(failure)
    await expectNothing(data)
  })

  test.each([/^rename/, /^sync ..$/])(
    'if the disk fails at the third %s, no file is stored',
    async (matches) => {
      let seen = 0
      const { files } = watchedFiles((call) => {
        if (!matches.test(call)) return
        seen += 1
        if (seen === 3) throw systemError('EIO')
      })
      await using data = await temporaryData(files)
      const arriving = Array.from({ length: 8 }, () => file(randomBytes(10)))
      await expect(storing(data)(await data.bucket('default'), incoming(...arriving))).rejects.toThrow('EIO')
      await expectNothing(data)
    },
  )

  test.each(['storage-full', 'catalog-busy'] as const)(
    'a commit refused with %s removes the bytes',
    async (code) => {
      await using data = await temporaryData()
      const refusal = new Fault(code, 'Not now.')
      const addItems = () => Promise.reject(refusal)
      const files = incoming(file(randomBytes(10)), file(randomBytes(10)))
      await expect(storing(data, { addItems })(await data.bucket('default'), files)).rejects.toBe(refusal)
      await expectNothing(data)
    },
  )

  test('a commit with an unknown outcome keeps the bytes, because the rows may exist', async () => {
    await using data = await temporaryData()
    const bucketId = await data.bucket('default')
    const bytes = randomBytes(10)
    const addItems: Catalog['addItems'] = async (...request) => {
      await data.catalog.addItems(...request)
      throw new Error('the connection was lost')
    }
    await expect(storing(data, { addItems })(bucketId, incoming(file(bytes)))).rejects.toThrow('lost')
    const { rows } = await data.catalog.page(bucketId, 1)
    expect(rows).toHaveLength(1)
    for (const { id } of rows) expect(await readBytes(data.blobs, id)).toEqual(bytes)
  })

  test.each([{ maxItems: 2 }, { maxBytes: 5 }])(
    'Q2 files that arrive together and exceed a quota of %o are refused before more are read',
    async (quota) => {
      await using data = await temporaryData(undefined, 100)
      const bucketId = await data.bucket('default')
      await data.catalog.setBucket('default', quota)
      const whole = () => ({ sent: unnamed, body: Buffer.from('ab') })
      let requested = 0
      async function* groups() {
        for (const group of [[whole(), whole(), whole()], [whole()]]) {
          requested += 1
          yield group
        }
      }
      await expect(storing(data)(bucketId, groups())).rejects.toMatchObject({ code: 'quota-exceeded' })
      expect(requested).toBe(1)
      await expectNothing(data)
    },
  )
})
