import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pino } from 'pino'
import { expect, onTestFinished, test, vi } from 'vitest'
import { until } from '../../../../test/harness/until.ts'
import { Fault } from '../../src/core/faults.ts'
import { Closers } from '../../src/core/tasks.ts'
import { checkDataHistory } from '../../src/service/data.ts'
import { openSqliteCatalog } from '../../src/storage/catalog/engines/sqlite/sqlite-catalog.ts'
import type { BucketId } from '../../src/storage/catalog/records.ts'
import { inBlobStore, newBucket, newItems } from '../storage/catalog/samples.ts'
import { tempDirectory } from '../storage/catalog/temp-directory.ts'

test('F13 a start does not wait for a catalog that cannot be written, and renews the history later', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  onTestFinished(() => void vi.useRealTimers())
  const data = join(tempDirectory(), 'data')
  const lines: string[] = []
  const log = pino({}, { write: (line: string) => void lines.push(line) })
  const catalog = await openSqliteCatalog({
    ...{ directory: data, writer: 'direct' },
    onRenewal: () => log.warn('renewed'),
  })
  const bucketId = await newBucket(catalog, 'b')
  await catalog.checkHistory([], true)
  await catalog.addItems(bucketId, inBlobStore(newItems(3)))
  // A change that the catalog does not have any more.
  const lost = `${bucketId} ${2 ** 40}\n`
  await mkdir(join(data, 'blobs'), { recursive: true })
  await writeFile(join(data, 'blobs', '.identity'), 'identity\n')
  const record = join(data, 'blobs', '.announced')
  await writeFile(record, lost)

  let isBusy = true
  const settle: typeof catalog.checkHistory = async (...input) => {
    if (isBusy) throw new Fault('catalog-busy', 'The catalog is busy.')
    return catalog.checkHistory(...input)
  }
  const closers = new Closers(() => undefined)
  onTestFinished(async () => {
    await closers.closeAll()
    await catalog.close()
  })
  const context = { config: { data, blobsUrl: null }, log, closers }
  await checkDataHistory(context, { catalog: { ...catalog, checkHistory: settle } })
  await catalog.readChanges(bucketId, 'now', 0)
  const warnings = () => lines.filter((line) => line.includes('checked again')).length
  expect(warnings()).toBe(1)
  vi.advanceTimersByTime(10_000)
  await until('another attempt', () => warnings() === 2)
  expect(await readFile(record, 'utf8')).toBe(lost)
  isBusy = false
  await until('the history is renewed', () => {
    vi.advanceTimersByTime(10_000)
    return lines.some((line) => line.includes('"renewed"'))
  })
})

test('F13 the record of a start keeps the changes of buckets that nobody has read since, the last ones of 32', async () => {
  const data = join(tempDirectory(), 'data')
  const catalog = await openSqliteCatalog({ directory: data, writer: 'direct' })
  onTestFinished(() => catalog.close())
  const buckets: BucketId[] = []
  for (let number = 0; number < 34; number += 1) buckets.push(await newBucket(catalog, `b${number}`))
  await mkdir(join(data, 'blobs'), { recursive: true })
  await writeFile(join(data, 'blobs', '.identity'), 'identity\n')
  const ends = new Map<BucketId, number>()
  async function run(read: readonly BucketId[]): Promise<string[]> {
    const closers = new Closers(() => undefined)
    const restarted = await openSqliteCatalog({ directory: data, writer: 'direct' })
    await checkDataHistory(
      { config: { data, blobsUrl: null }, log: pino({ enabled: false }), closers },
      { catalog: restarted },
    )
    for (const id of read) {
      await restarted.addItems(id, inBlobStore(newItems(1)))
      ends.set(id, (await restarted.readChanges(id, 'now', 0))?.next ?? 0)
    }
    await closers.closeAll()
    await restarted.close()
    return (await readFile(join(data, 'blobs', '.announced'), 'utf8')).trim().split('\n')
  }
  const lines = (ids: readonly BucketId[]) => ids.map((id) => `${id} ${ends.get(id)}`)
  const [first, second, third] = [buckets.slice(0, 2), buckets.slice(1, 2), buckets.slice(3)]
  expect(await run(first)).toEqual(lines(first))
  expect(await run(second)).toEqual(lines([...first.slice(0, 1), ...second]))
  expect(await run([])).toEqual(lines(first))
  expect(await run(third)).toEqual(lines([...second, ...third]))
})
