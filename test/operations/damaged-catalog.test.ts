import { join } from 'node:path'
import { expect, test } from 'vitest'
import { temporaryDirectory } from '../harness/directory.ts'
import { filePart, formBytes, sendForm } from '../harness/form.ts'
import { expectProblem } from '../harness/problem.ts'
import { scrape } from '../harness/scrape.ts'
import { startServer } from '../harness/server.ts'
import { damagePage, fsck, listAll, outcome } from '../harness/upkeep.ts'
import { workersOf } from '../harness/workers.ts'

/** Enough for some pages between the damaged one and that of a new item, because SQLite balances a page with its neighbours. */
const count = 500

test('S10, F1, F7, F8 a damaged page of the catalog ends no process: only the items on it receive a 500', async () => {
  await using directory = await temporaryDirectory()
  const place = (name: string) => join(directory.path, name)
  const [data, earlier, fresh] = [place('data'), place('earlier'), place('fresh')]
  await using first = await startServer({}, data)
  const { token } = first
  const parts = Array.from({ length: count - 1 }, (_, index) =>
    filePart(`name ${index}.txt`, `text ${index}`),
  )
  const stored = await sendForm(first, formBytes(...parts, filePart('large.txt', 'large '.repeat(5_000))))
  const { data: items }: { data: { id: string }[] } = JSON.parse(await stored.text())
  const ids = items.map(({ id }) => id)
  const largeId = ids.at(-1) ?? ''
  expect((await outcome(['backup', earlier], data)).code).toBe(0)
  await first.stop()
  await damagePage(data, 'contents', 'overflow')
  await damagePage(data, 'items', 'leaf')

  await using server = await startServer({ MEDIABUCKET_WORKERS: '2' }, data)
  const workers = workersOf(server)
  const headers = { authorization: `Bearer ${token}` }
  const statuses = await Promise.all(ids.map(async (id) => (await fetch(`${server.url}/media/${id}`)).status))
  expect(new Set(statuses)).toEqual(new Set([200, 500]))
  const lost = ids.filter((id, index) => statuses[index] === 500 && id !== largeId)
  expect(lost.length).toBeGreaterThan(0)
  expect(lost.length).toBeLessThan(count / 2)
  const damaged = await fetch(`${server.url}/media/${largeId}`)
  expect(damaged.headers.get('cache-control')).toBe('no-store')
  await expectProblem(damaged, 500, 'internal')
  // Pages with rows that cannot be read, and searches of their names.
  const pages = await Promise.all(
    Array.from({ length: count / 10 }, async (_, index) => {
      const response = await server.request(`/api/media?page=${index + 1}`, { headers })
      return response.status
    }),
  )
  expect(new Set(pages)).toEqual(new Set([200, 500]))
  for (const name of ['name', 'large', 'name 3'])
    expect([200, 500]).toContain((await server.request(`/api/items?name=${name}`, { headers })).status)
  const upload = await server.request('/api/media', { method: 'POST', body: 'new', headers })
  expect(upload.status).toBe(201)
  expect(workersOf(server)).toEqual(workers)
  const errors = (await scrape(server)).value('storage_errors_total', 'cause="corrupt"')
  expect(errors).toBeGreaterThan(lost.length)
  await server.stop()

  const { code, report } = await fsck(data)
  expect(code).toBe(1)
  const subjectsOf = (wanted: string) => report.findings.find((one) => one.code === wanted)?.subjects
  expect(subjectsOf('row-unreadable')?.toSorted()).toEqual(lost.toSorted())
  expect(subjectsOf('bytes-unreadable')).toEqual([largeId])

  // The earlier backup has what cannot be read.
  expect((await outcome(['backup', earlier], data)).code).toBe(0)
  const backup = await outcome(['backup', fresh], data)
  expect([backup.code, backup.stderr]).toEqual([5, ''])
  expect(backup.stdout).toContain(`${lost.length + 1} items without rows or bytes`)
  for (const [from, expected] of [
    [earlier, count + 1],
    [fresh, count + 1 - lost.length],
  ] as const) {
    const to = place(`restored-${expected}`)
    expect((await outcome(['restore', from], to)).code).toBe(from === earlier ? 0 : 5)
    await using again = await startServer({}, to)
    expect(await listAll(again, headers.authorization)).toHaveLength(expected)
    expect((await fetch(`${again.url}/media/${largeId}`)).status).toBe(from === earlier ? 200 : 500)
    await again.stop()
    const { found } = await fsck(to)
    expect(Object.keys(found)).toEqual(from === earlier ? [] : ['bytes-missing'])
  }
})
