import { randomBytes } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { canMount, smallDisk } from '../../../../../test/harness/small-disk.ts'
import { PartMemory } from '../../../src/storage/blobs/s3/object-uploads.ts'
import { receiveBytes } from './blob-contract.ts'
import { temporaryS3Store } from './temporary-s3-store.ts'

const overloaded = { code: 'overloaded' }

/** A disk of 1 MB for the temporary files of this process. */
async function smallTemporaryDisk() {
  const disk = await smallDisk(1)
  const earlier = process.env['TMPDIR']
  process.env['TMPDIR'] = disk.path
  return {
    files: () => readdir(disk.path),
    async [Symbol.asyncDispose]() {
      if (earlier === undefined) delete process.env['TMPDIR']
      else process.env['TMPDIR'] = earlier
      await disk[Symbol.asyncDispose]()
    },
  }
}

describe.runIf(await canMount())('while the disk of temporary files is full', () => {
  test('a part beyond the memory is refused as overload, and the space is free afterwards', async () => {
    await using disk = await smallTemporaryDisk()
    const part = new PartMemory(0).create(8_000_000)
    await part.append(randomBytes(500_000))
    await expect(part.append(randomBytes(5_000_000))).rejects.toMatchObject(overloaded)
    await part.discard()
    expect(await disk.files()).toEqual([])
    const next = new PartMemory(0).create(8_000_000)
    await next.append(randomBytes(500_000))
    await next.discard()
  })

  test('a picture cannot be shared with other processes, which is overload', async () => {
    await using opened = await temporaryS3Store()
    const received = await receiveBytes(opened.store, randomBytes(3_000_000))
    await using disk = await smallTemporaryDisk()
    await expect(opened.store.share(received, received.size)).rejects.toMatchObject(overloaded)
    expect(await disk.files()).toEqual([])
  })
})
