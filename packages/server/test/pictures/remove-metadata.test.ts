import { randomBytes } from 'node:crypto'
import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Piece, RemovableFormat } from '@mediabucket/strip-metadata'
import sharp from 'sharp'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { film, heicOf } from '../../../../test/harness/films.ts'
import { animation, noise } from '../../../../test/harness/pictures.ts'
import { Fault } from '../../src/core/faults.ts'
import { createItemIds } from '../../src/core/ids.ts'
import { service } from '../../src/core/token-rules.ts'
import { compareFiles } from '../../src/pictures/compare-files.ts'
import { PictureWorkers } from '../../src/pictures/picture-workers.ts'
import { removeMetadataOperation } from '../../src/pictures/received-pictures.ts'
import { findTools } from '../../src/pictures/tools.ts'
import { received } from '../../src/storage/blobs/received-file.ts'
import type { BucketId } from '../../src/storage/catalog/records.ts'
import { createFileReceivers } from '../../src/uploads/received-files.ts'
import { appendUploadOperation } from '../../src/uploads/resumable-chunks.ts'
import { OwnUploadLocks } from '../../src/uploads/upload-locks.ts'
import { chunksOf, readBytes } from '../storage/blobs/blob-contract.ts'
import { temporaryS3Store } from '../storage/blobs/temporary-s3-store.ts'
import { unlimited } from '../uploads/temporary-media.ts'
import { withMethods } from '../with-methods.ts'

const removal = { contentType: 'image/jpeg', bucketId: 1 as BucketId, keepsTaken: false }
const limits = { workers: 1, queue: 10, queueTimeout: 60_000, timeout: 60_000, memory: 6e8, niceness: 0 }

describe('X6 whatever the plan is, a file is refused unless it shows the same afterwards', () => {
  const tools = findTools(process.env['PATH'] ?? '')
  const comparisonWorkers = new PictureWorkers({ ...limits, startPrograms: true })
  afterAll(() => comparisonWorkers.close())
  const unused = () => Promise.reject(new Error('the bytes are in memory'))

  /** The outcome of a removal by this plan. */
  async function removedBy(bytes: Buffer, pieces: readonly Piece[], format: RemovableFormat) {
    const remove = removeMetadataOperation({
      blobs: { openReceived: unused, receive: unused, share: unused, discard: unused },
      workers: { run: async () => ({ outcome: 'planned', format, pieces, reading: null }) },
      ...{ comparisonWorkers, tools, now: Date.now },
    })
    const file = received(Uint8Array.from(bytes))
    return remove(file, removal).then(
      ({ stored }) => stored.size,
      (error: unknown) => (error instanceof Fault ? error.code : error),
    )
  }

  const picture = () => noise(64)
  const video = (extension: string, ...options: readonly string[]) =>
    film(extension, '64x64', [...options, '-g', '50'], 'noise=alls=20')
  test.each<[what: string, format: RemovableFormat, make: () => Promise<Buffer>]>([
    ['JPEG', 'jpeg', () => picture().jpeg({ quality: 95 }).toBuffer()],
    ['CMYK', 'jpeg', () => picture().toColourspace('cmyk').jpeg().toBuffer()],
    ['PNG', 'png', () => picture().png().toBuffer()],
    ['16-bit PNG', 'png', () => picture().toColourspace('rgb16').png().toBuffer()],
    ['grey PNG', 'png', () => picture().toColourspace('b-w').png().toBuffer()],
    [
      'TIFF of several pages',
      'tiff',
      async () => (await animation(9)).tiff({ compression: 'none' }).toBuffer(),
    ],
    ['WebP', 'webp', () => picture().webp({ quality: 95 }).toBuffer()],
    ['animation', 'webp', async () => (await animation(9)).webp({ lossless: true, effort: 0 }).toBuffer()],
    ['TIFF', 'tiff', () => picture().tiff({ compression: 'none' }).toBuffer()],
    [
      'pyramid',
      'tiff',
      () => picture().tiff({ tile: true, tileWidth: 16, tileHeight: 16, pyramid: true }).toBuffer(),
    ],
    ['AVIF', 'boxes', () => picture().avif({ effort: 0, quality: 80 }).toBuffer()],
    ['HEIC', 'boxes', async () => heicOf(await picture().png().toBuffer())],
    ['MP4', 'boxes', () => video('mp4')],
    ['QuickTime', 'boxes', () => video('mov', '-c:v', 'mjpeg')],
  ])('%s', async (_what, format, make) => {
    const bytes = await make()
    const [third, half] = [Math.floor(bytes.length / 3), Math.floor(bytes.length / 2)]
    const whole = [{ from: 0, to: half }, { bytes: bytes.subarray(half) }]
    expect(await removedBy(bytes, whole, format)).toBe(bytes.length)
    const damaging = [{ from: 0, to: third }, { zeros: half - third }, { from: half, to: bytes.length }]
    expect(await removedBy(bytes, damaging, format)).toBe('file-unreadable')
  })

  test('which includes its colours and its orientation', async () => {
    const sent = await picture().withMetadata({ orientation: 6, icc: 'p3' }).jpeg().toBuffer()
    for (const name of ['Exif', 'ICC_PROFILE']) {
      const start = sent.indexOf(name) - 4
      const end = start + 2 + sent.readUInt16BE(start + 2)
      const pieces = [
        { from: 0, to: start },
        { from: end, to: sent.length },
      ]
      expect(await removedBy(sent, pieces, 'jpeg')).toBe('file-unreadable')
    }
  })

  test('and one that no decoder reads is refused', async () => {
    const broken = Buffer.from('ffd8ffe000104a464946', 'hex')
    expect(await removedBy(broken, [{ from: 0, to: 2 }], 'jpeg')).toBe('file-unreadable')
  })
})

describe('X6 a program that does not end says nothing about the file', () => {
  async function compared(script: string) {
    await using directory = await mkdtempDisposable(join(tmpdir(), 'mediabucket-compare-'))
    const ffmpeg = join(directory.path, 'ffmpeg')
    await writeFile(ffmpeg, `#!/bin/sh\n${script}\n`, { mode: 0o755 })
    const task = { type: 'compare', before: ffmpeg, after: ffmpeg, programs: { ffmpeg, heif: null } } as const
    return await compareFiles(sharp, task, 6e8)
  }

  test('a file is not compared if that takes too long', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    try {
      const comparing = compared('exec sleep 600')
      await vi.waitUntil(() => vi.getTimerCount() > 0)
      vi.advanceTimersByTime(100_000)
      expect(await comparing).toBe('unchecked')
    } finally {
      vi.useRealTimers()
    }
  })

  test('it is an error if the system has ended the program', async () => {
    await expect(compared('kill -KILL $$')).rejects.toMatchObject({ name: 'ProgramLost' })
    const unused = () => Promise.reject(new Error('the bytes are in memory'))
    const pieces = [{ from: 0, to: 2 }]
    const remove = removeMetadataOperation({
      blobs: { openReceived: unused, receive: unused, share: unused, discard: unused },
      workers: { run: async () => ({ outcome: 'planned', format: 'jpeg', pieces, reading: null }) },
      comparisonWorkers: { run: async () => ({ outcome: 'unreadable' }) },
      ...{ tools: new Map(), now: Date.now },
    })
    const removing = remove(received(Uint8Array.of(0xff, 0xd8, 0xff)), removal)
    await expect(removing).rejects.toMatchObject({ code: 'overloaded' })
  })
})

test('X2, X4 a resumable upload to an S3 store leaves only the object without metadata, and none if it is refused', async () => {
  await using opened = await temporaryS3Store()
  const { catalog, store: blobs } = opened
  const workers = new PictureWorkers(limits)
  const comparisonWorkers = new PictureWorkers({ ...limits, startPrograms: true })
  try {
    const append = appendUploadOperation({
      ...{ catalog, blobs, newReceiver: createFileReceivers({ blobs, inlineSize: 0 }), maxFileSize: 1e9 },
      ...{ measurePicture: async () => null, locks: new OwnUploadLocks(), expiry: 3_600_000, now: Date.now },
      ...{ onStored: null, space: unlimited },
      readTaken: () => null,
      removeMetadata: removeMetadataOperation({
        ...{ blobs, workers, comparisonWorkers, tools: new Map(), now: Date.now },
      }),
    })
    const side = 1_000
    const sent = await sharp(randomBytes(side * side * 3), {
      raw: { width: side, height: side, channels: 3 },
    })
      .withExif({ IFD0: { Make: 'SecretMake' } })
      .jpeg({ quality: 95 })
      .toBuffer()
    const send = async (bytes: Buffer) => {
      const upload = await opened.newUpload(bytes.length)
      const source = chunksOf(bytes, 65_536)
      const chunk = { offset: 0, source, isAtomic: false, by: service, removesMetadata: true, limits: null }
      return { upload, appended: await append(upload.id, chunk) }
    }

    const { upload, appended } = await send(sent)
    const { item } = appended
    if (item === null) throw new Error('the upload is not finished')
    expect(item.id).not.toBe(upload.itemId)
    expect(await catalog.findUpload(upload.id)).toMatchObject({ itemId: item.id, offset: sent.length })
    const stored = await readBytes(blobs, item.id)
    expect([stored?.length, stored?.includes('SecretMake')]).toEqual([item.size, false])
    expect(await opened.count()).toBe(1)

    const damaged = Buffer.concat([sent.subarray(0, 300), randomBytes(100_000)])
    await expect(send(damaged)).rejects.toMatchObject({ code: 'file-unreadable' })
    expect(await opened.count()).toBe(1)

    // Each comparison needs two of the downloads that the store allows at a time.
    const count = 16
    const half = Math.floor(sent.length / 2)
    const pieces = [
      { from: 0, to: half },
      { from: half, to: sent.length },
    ]
    let copies = 0
    const { promise: allCopied, resolve: onAllCopied } = Promise.withResolvers<void>()
    const remove = removeMetadataOperation({
      ...{ tools: new Map(), now: Date.now },
      blobs: withMethods(blobs, {
        async receive(...args) {
          const copy = await blobs.receive(...args)
          copies += 1
          if (copies === count) onAllCopied()
          return copy
        },
      }),
      workers: { run: async () => ({ outcome: 'planned', format: 'jpeg', pieces, reading: null }) },
      // All others wait for their downloads.
      comparisonWorkers: { run: (...args) => allCopied.then(() => comparisonWorkers.run(...args)) },
    })
    const newId = createItemIds(Date.now)
    const file = await blobs.receive(newId(), chunksOf(sent, 65_536), sent.length)
    const removing = Array.from({ length: count }, () => remove(file, removal))
    for (const { stored: copy } of await Promise.all(removing)) expect(copy.size).toBe(sent.length)
  } finally {
    workers.close()
    comparisonWorkers.close()
  }
})
