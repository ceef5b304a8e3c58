import { truncate } from 'node:fs/promises'
import { expect, onTestFinished, test } from 'vitest'
import type { ItemId } from '../../src/core/ids.ts'
import { openSqliteInspection } from '../../src/storage/catalog/engines/sqlite/sqlite-inspection.ts'
import { createFindings } from '../../src/upkeep/findings.ts'
import { checkItems } from '../../src/upkeep/fsck.ts'
import { type TemporaryData, temporaryData } from '../uploads/temporary-media.ts'

/** Checks every byte. `afterOpen` runs between opening a blob and reading it. */
async function findingsOf(data: TemporaryData, afterOpen: (id: ItemId) => Promise<void>) {
  const inspection = await openSqliteInspection(data.disk.directory)
  onTestFinished(() => inspection.close())
  const findings = createFindings()
  await checkItems({
    catalog: data.catalog,
    inspection,
    blobs: {
      async open(id) {
        const blob = await data.blobs.open(id)
        await afterOpen(id)
        return blob
      },
    },
    findings,
    verifyBytes: true,
    onItem() {},
  })
  return findings.all().map(({ code, subjects }) => [code, subjects])
}

test('F3 bytes that end before their size are reported as unreadable, and the check continues', async () => {
  await using data = await temporaryData()
  const [intact, truncated] = [await data.store('intact'), await data.store('truncated')]
  const path = (await data.disk.stored()).find((stored) => stored.endsWith(truncated.id)) ?? ''
  const findings = await findingsOf(data, async (id) => {
    if (id === truncated.id) await truncate(path, 3)
  })
  expect(findings).toEqual([['bytes-unreadable', [truncated.id]]])
  expect(await data.catalog.item(intact.id)).toMatchObject({ isDamaged: false })
})

test('F3 an error that is not about the bytes of an item ends the check', async () => {
  await using data = await temporaryData()
  await data.store('text')
  const failure = new Error('the form ended before its last boundary')
  await expect(findingsOf(data, () => Promise.reject(failure))).rejects.toBe(failure)
})
