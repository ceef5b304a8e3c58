import { benchListing, type Extent } from './listing.ts'

// npm run bench -- listing [--short]

const [suite, form] = process.argv.slice(2)
if (suite !== 'listing') {
  console.error('Usage: npm run bench -- listing [--short]')
  process.exit(2)
}
const short: Extent = { rounds: 1, seconds: 1, large: 20_000, buckets: 5 }
const long: Extent = { rounds: 5, seconds: 5, large: 1_000_000, buckets: 1000 }
const rows = await benchListing(form === '--short' ? short : long, (text) => console.error(text))
for (const { name, measure } of rows) {
  console.log(
    [
      name.padEnd(48),
      `${measure.perSecond.toFixed(0)}/s`,
      `${(measure.bytesPerSecond / 1e6).toFixed(1)} MB/s`,
      `${(measure.cpuPerRequest * 1e6).toFixed(1)} µs CPU`,
      `p50 ${measure.p50.toFixed(3)} ms`,
      `p99 ${measure.p99.toFixed(3)} ms`,
    ].join('  '),
  )
}
