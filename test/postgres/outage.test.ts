import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { databasePassword, startPostgres, stopPostgres } from '../harness/postgres.ts'
import { scrape } from '../harness/scrape.ts'
import { startServer } from '../harness/server.ts'
import { until } from '../harness/until.ts'

test.each(['1', '2'])(
  'O1, O2 without its database a service of %s workers responds 503 in time and lives; it recovers without a restart',
  async (workers) => {
    const directory = await mkdtemp(join(tmpdir(), 'mediabucket-postgres-'))
    try {
      const database = await startPostgres(directory)
      await using server = await startServer({
        MEDIABUCKET_DATABASE_URL: database.url('postgres'),
        MEDIABUCKET_WORKERS: workers,
      })
      const upload = () => server.request('/api/media', { method: 'POST', body: 'text' })
      const isReady = async () => (await fetch(`${server.url}/readyz`)).status === 200
      expect((await upload()).status).toBe(201)
      expect(await isReady()).toBe(true)

      await database.control('-m', 'immediate', 'stop')
      const statuses = await Promise.all([server.request('/api/media'), upload()])
      for (const response of statuses) {
        expect(response.status).toBe(503)
        expect(await response.json()).toMatchObject({ title: 'The catalog is unavailable' })
        expect(response.headers.get('retry-after')).toMatch(/^\d+$/)
      }
      const ready = await fetch(`${server.url}/readyz`)
      expect(ready.status).toBe(503)
      expect(await ready.text()).toContain('catalog-unreadable')
      const { value } = await scrape(server)
      expect([value('ready', 'for="reads"'), value('ready', 'for="writes"')]).toEqual([0, 0])
      const unreachable = async () =>
        (await scrape(server)).value('storage_errors_total', 'cause="database-unreachable"')
      await until('the errors of all workers are counted', async () => (await unreachable()) === 2)

      await database.control('start')
      await until('readiness', isReady)
      expect((await upload()).status).toBe(201)
      expect(await (await server.request('/api/media')).json()).toMatchObject({ total: 2 })
      for (const secret of [databasePassword, decodeURIComponent(databasePassword)])
        expect(server.stdout() + server.stderr()).not.toContain(secret)
    } finally {
      await stopPostgres(directory)
      await rm(directory, { recursive: true, force: true })
    }
  },
)
