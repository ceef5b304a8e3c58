import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import { expect, test } from 'vitest'
import { ServiceMetrics } from '../../src/service/service-metrics.ts'

function newProcess() {
  const registry = new Registry()
  const registers = [registry]
  const requests = new Counter({ name: 'requests_total', help: 'h', labelNames: ['route'], registers })
  const seconds = new Histogram({ name: 'seconds', help: 'h', buckets: [1, 5], registers })
  const open = new Gauge({ name: 'open', help: 'h', registers })
  const items = new Gauge({ name: 'items', help: 'h', aggregator: 'first', registers })
  return { registry, requests, seconds, open, items, snapshotMetrics: () => registry.getMetricsAsJSON() }
}

/** The parent and two workers that have counted. */
function service() {
  const [parent, one, two] = [newProcess(), newProcess(), newProcess()]
  const metrics = new ServiceMetrics(parent.snapshotMetrics)
  for (const [worker, amount] of [
    [one, 1],
    [two, 10],
  ] as const) {
    metrics.addWorker(worker)
    worker.requests.inc({ route: 'a' }, amount)
    for (const value of [0.5, 3, 9]) worker.seconds.observe(value)
    worker.open.set(amount)
  }
  for (const { items } of [parent, one, two]) items.set(7)
  return { metrics, one, two }
}

const lines = (text: string) => text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))

test('O11 counters, histograms and gauges are sums, and what all processes read is one value', async () => {
  const { metrics } = service()
  expect(lines(await metrics.text()).sort()).toEqual([
    'items 7',
    'open 11',
    'requests_total{route="a"} 11',
    'seconds_bucket{le="+Inf"} 6',
    'seconds_bucket{le="1"} 2',
    'seconds_bucket{le="5"} 4',
    'seconds_count 6',
    'seconds_sum 25',
  ])
})

test('O11 the counts of ended workers stay in the sums, their gauges do not', async () => {
  const { metrics, one, two } = service()
  await metrics.text()
  metrics.removeWorker(one)
  metrics.removeWorker(two)
  expect(lines(await metrics.text()).sort()).toEqual([
    'items 7',
    'open 0',
    'requests_total{route="a"} 11',
    'seconds_bucket{le="+Inf"} 6',
    'seconds_bucket{le="1"} 2',
    'seconds_bucket{le="5"} 4',
    'seconds_count 6',
    'seconds_sum 25',
  ])
})

test('O11 the last snapshot of a worker that does not respond is used', async () => {
  const { metrics, one } = service()
  await metrics.text()
  one.snapshotMetrics = () => new Promise(() => undefined)
  expect(lines(await metrics.text())).toContain('requests_total{route="a"} 11')
})
