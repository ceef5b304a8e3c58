import { Histogram, Registry } from 'prom-client'
import { expect, test } from 'vitest'
import { PrelabelledHistogram } from '../../src/http/prelabelled-histogram.ts'

const about = {
  name: 'taken_seconds',
  help: 'How long it took.',
  labelNames: ['method', 'status'],
  buckets: [0.001, 0.5, 30],
}
const labels = [
  { method: 'GET', status: 200 },
  { method: 'PUT', status: 'none' },
] as const
const values = [0, 0.001, 0.0011, 0.5, 29.9, 30, 31, 1e6]

test('O2 its output equals that of prom-client’s own histogram', async () => {
  const [ours, theirs] = [new Registry(), new Registry()]
  const counted = new PrelabelledHistogram({ ...about, registers: [ours] })
  const plain = new Histogram({ ...about, registers: [theirs] })
  expect(await ours.metrics()).toBe(await theirs.metrics())
  for (const each of labels) {
    const series = counted.seriesOf(each)
    for (const value of values) {
      series.observe(value)
      plain.observe(each, value)
    }
  }
  expect(await ours.metrics()).toBe(await theirs.metrics())
})
