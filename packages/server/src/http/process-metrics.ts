import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setImmediate } from 'node:timers'
import { type Aggregator, collectDefaultMetrics, Gauge, type Registry } from 'prom-client'

// The metrics `process_*` and `nodejs_*`.

/** Milliseconds that pass before prom-client measures the event loop for the first time: it never does. */
const never = 86_400_000

/** Milliseconds between two measurements, where Node.js does not measure each iteration of the event loop (before Node.js 26). */
const resolution = 10

/** Adds the metrics of prom-client, and those of the event loop. They measure from now on. */
export function addProcessMetrics(registry: Registry): void {
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: never })
  // Gauges, whose names must not end in `_total`. They are the sums of gauges that remain.
  for (const what of ['handles', 'requests', 'resources'])
    registry.removeSingleMetric(`nodejs_active_${what}_total`)
  addEventLoopMetrics(registry)
}

/**
 * The metrics of prom-client with the same names measure with a timer, which wakes the process a hundred times a second. These measure how long
 * each iteration of the event loop takes.
 */
function addEventLoopMetrics(registry: Registry): void {
  const options = { samplePerIteration: true, resolution }
  const histogram = monitorEventLoopDelay(options)
  histogram.enable()
  // The first iteration counts from its wait for events.
  setImmediate(() => histogram.reset())

  const figures: readonly [string, string, Aggregator, () => number][] = [
    ['min', 'minimum', 'min', () => histogram.min],
    ['max', 'maximum', 'max', () => histogram.max],
    ['mean', 'mean', 'average', () => histogram.mean],
    ['stddev', 'standard deviation', 'average', () => histogram.stddev],
    ['p50', '50th percentile', 'average', () => histogram.percentile(50)],
    ['p90', '90th percentile', 'average', () => histogram.percentile(90)],
    ['p99', '99th percentile', 'average', () => histogram.percentile(99)],
  ]
  for (const [at, [name, words, aggregator, read]] of figures.entries()) {
    registry.removeSingleMetric(`nodejs_eventloop_lag_${name}_seconds`)
    new Gauge({
      name: `nodejs_eventloop_lag_${name}_seconds`,
      help: `The ${words} of the time that an iteration of the event loop took, since the last scrape.`,
      aggregator,
      registers: [registry],
      collect() {
        this.set(histogram.count === 0 ? 0 : read() / 1e9)
        // A scrape collects in the order of this list.
        if (at === figures.length - 1) histogram.reset()
      },
    })
  }
}
