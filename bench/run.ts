import { cpus } from 'node:os'
import { benchListing } from './listing.ts'
import { reportListing } from './listing-report.ts'
import type { Extent } from './rounds.ts'

// npm run bench -- listing [--short]. Prints Markdown; bench/RESULTS.md keeps the last honest run.

const [suite, form] = process.argv.slice(2)
if (suite !== 'listing' || (form !== undefined && form !== '--short')) {
  console.error('Usage: npm run bench -- listing [--short]')
  process.exit(2)
}
const short: Extent = { rounds: 1, seconds: 1, large: 20_000, buckets: 5 }
const long: Extent = { rounds: 5, seconds: 3, large: 1_000_000, buckets: 1000 }
const results = await benchListing(form === '--short' ? short : long, (text) => console.error(text))
console.log(`${cpus().length} × ${cpus()[0]?.model}, Node ${process.versions.node}\n`)
console.log(reportListing(results))
