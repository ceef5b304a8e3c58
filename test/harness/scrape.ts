import { freshMetrics } from './fresh-metrics.ts'
import type { SharedServer } from './server.ts'

const sample = /^(?<name>[a-zA-Z_:][\w:]*)(?:\{(?<labels>(?:\w+="(?:[^"\\]|\\.)*",?)*)\})? (?<value>\S+)$/

interface Metric {
  readonly name: string
  readonly type: string
  readonly help: string
}

/** Reads `/metrics`; throws if a line is not in the text format of Prometheus. */
export async function scrape(server: Pick<SharedServer, 'url'>) {
  const text = await freshMetrics(server.url)
  if (!text.endsWith('\n')) throw new Error('the last line does not end')
  const samples = new Map<string, number>()
  const helps = new Map<string, string>()
  const metrics: Metric[] = []
  for (const line of text.split('\n')) {
    const [, kind, about = '', rest = ''] = /^# (HELP|TYPE) (\w+) (\S.*)$/.exec(line) ?? []
    if (kind === 'HELP') helps.set(about, rest)
    if (kind === 'TYPE') metrics.push({ name: about, type: rest, help: helps.get(about) ?? '' })
    if (line === '' || kind) continue
    const { name, labels = '', value } = sample.exec(line)?.groups ?? {}
    // As Go's ParseFloat, which Prometheus uses.
    const number = Number(value?.replace('Inf', 'Infinity'))
    if (Number.isNaN(number) && !/^nan$/i.test(value ?? '')) throw new Error(`no sample: ${line}`)
    samples.set(`${name}{${labels}}`, number)
  }
  return {
    metrics,
    samples,
    /** A sample of a metric of the service: `value('items')`. */
    value: (name: string, labels = ''): number | undefined => samples.get(`mediabucket_${name}{${labels}}`),
  }
}
