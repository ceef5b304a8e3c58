import { execFile, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parse } from 'yaml'
import { temporaryDirectory } from '../harness/directory.ts'
import { scrape } from '../harness/scrape.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { needTools } from '../harness/tools.ts'

const docs = resolve(import.meta.dirname, '../../docs/operations')
const read = (name: string) => readFileSync(join(docs, name), 'utf8')
const promtool = async (...args: string[]) => {
  needTools('promtool')
  return await promisify(execFile)('promtool', args)
}

const Dashboard = Type.Object({
  annotations: Type.Object({ list: Type.Array(Type.Object({ expr: Type.String() })) }),
  templating: Type.Object({ list: Type.Array(Type.Object({ name: Type.String(), query: Type.String() })) }),
  panels: Type.Array(
    Type.Object({
      id: Type.Integer(),
      title: Type.String(),
      targets: Type.Optional(Type.Array(Type.Object({ expr: Type.String() }))),
    }),
  ),
})
const dashboard = Value.Parse(Dashboard, JSON.parse(read('grafana-dashboard.json')))
const expressions = [
  ...dashboard.annotations.list.map(({ expr }) => expr),
  ...dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)),
]

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

test('O2 a running server has every metric that the dashboard and the alerts use', async () => {
  const { metrics } = await scrape(server)
  const known = new Set(
    metrics.flatMap(({ name, type }) =>
      type === 'histogram' ? ['_bucket', '_count', '_sum'].map((part) => name + part) : [name],
    ),
  )
  const rules = read('alerts.yml')
  const queries = dashboard.templating.list.map(({ query }) => query)
  const used = [...expressions, ...queries, rules].flatMap((text) =>
    [...text.matchAll(/\b(?:mediabucket|process|nodejs)_\w+/g)].map(([name]) => name),
  )
  expect(new Set(used).size).toBeGreaterThan(25)
  expect([...new Set(used)].filter((name) => !known.has(name))).toEqual([])
})

test('O2 the panels of the dashboard have unique ids and titles', () => {
  for (const key of ['id', 'title'] as const) {
    const values = dashboard.panels.map((panel) => panel[key])
    expect(new Set(values).size).toBe(values.length)
  }
})

test('O2 promtool accepts the metrics without a remark', async () => {
  const input = await (await fetch(`${server.url}/metrics`)).text()
  const { status, stderr } = spawnSync('promtool', ['check', 'metrics'], { input, encoding: 'utf8' })
  expect([status, stderr]).toEqual([0, ''])
})

const AlertTests = Type.Object({
  tests: Type.Array(
    Type.Object({
      promql_expr_test: Type.Array(
        Type.Object({
          eval_time: Type.String(),
          exp_samples: Type.Array(Type.Object({ labels: Type.String() })),
        }),
      ),
    }),
  ),
})

test('O2 promtool accepts the alerts, and each fires and ends at the documented thresholds', async () => {
  const checked = await promtool('check', 'rules', join(docs, 'alerts.yml'))
  expect(checked.stdout).toMatch(/SUCCESS: \d+ rules found/)
  const files = ['alerts', 'alerts-of-days'].map((name) => resolve(import.meta.dirname, `${name}.test.yml`))
  for (const file of files) expect((await promtool('test', 'rules', file)).stdout).toContain('SUCCESS')
  const tests = files.flatMap((file) => Value.Parse(AlertTests, parse(readFileSync(file, 'utf8'))).tests)
  // The checks of a test are in the order of their times, and each names all alerts that fire.
  const ended = tests.flatMap(({ promql_expr_test: checks }) => {
    const firing = checks.map(({ exp_samples }) =>
      exp_samples.map(({ labels }) => /alertname="(\w+)"/.exec(labels)?.[1]),
    )
    return firing.slice(0, -1).flatMap((names) => names.filter((name) => !firing.at(-1)?.includes(name)))
  })
  const names = [...read('alerts.yml').matchAll(/- alert: (\w+)/g)].map(([, name = '']) => name)
  expect(names.filter((name) => !ended.includes(name))).toEqual([])
})

test('O2 promtool accepts every expression of the dashboard', async () => {
  await using directory = await temporaryDirectory()
  // As rules, with the variables as Grafana fills them in.
  const rules = expressions.map((expr, index) => ({
    record: `panel:${index}`,
    expr: expr
      .replaceAll('$__rate_interval', '5m')
      .replaceAll('$job', 'mediabucket')
      .replaceAll('$instance', '.*'),
  }))
  const file = join(directory.path, 'rules.json')
  await writeFile(file, JSON.stringify({ groups: [{ name: 'dashboard', rules }] }))
  const { stdout } = await promtool('check', 'rules', file)
  expect(stdout).toContain(`SUCCESS: ${rules.length} rules found`)
})
