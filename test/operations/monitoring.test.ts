import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { scrape } from '../harness/scrape.ts'
import { startServer, type TestServer } from '../harness/server.ts'

const read = (name: string) =>
  readFileSync(resolve(import.meta.dirname, '../../docs/operations', name), 'utf8')

let server: TestServer
beforeAll(async () => {
  server = await startServer()
})
afterAll(() => server[Symbol.asyncDispose]())

test('O2 docs/operations/monitoring.md lists every metric of the service, with its type and its help', async () => {
  const { metrics } = await scrape(server)
  const rows = metrics
    .filter(({ name }) => name.startsWith('mediabucket_'))
    .map(({ name, type, help }) => `| \`${name}\` | ${type} | ${help} |`)
  expect(
    read('monitoring.md')
      .match(/^\| `mediabucket_.*$/gm)
      ?.sort(),
  ).toEqual(rows.sort())
})
