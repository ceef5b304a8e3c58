import { benchDownloads } from './downloads.ts'
import { reportDownloads } from './downloads-report.ts'
import { benchFeed, reportFeed } from './feed.ts'
import { benchGallery } from './gallery.ts'
import { reportGallery } from './gallery-report.ts'
import { benchItems } from './items.ts'
import { reportItems } from './items-report.ts'
import { benchListing } from './listing.ts'
import { reportListing } from './listing-report.ts'
import { benchLists, reportLists } from './lists.ts'
import { benchMemory, reportMemory } from './memory.ts'
import { benchObjects, reportObjects } from './objects.ts'
import { benchPostgres } from './postgres.ts'
import { reportPostgres } from './postgres-report.ts'
import { describeMachine, keepFigures } from './results.ts'
import { benchS3 } from './s3.ts'
import { reportS3 } from './s3-report.ts'
import { benchStart, reportStart } from './start.ts'
import { benchStreams } from './streams.ts'
import { reportStreams } from './streams-report.ts'
import { benchSync, reportSync } from './sync.ts'
import { benchTenants, reportTenants } from './tenants.ts'
import { benchUploads } from './uploads.ts'
import { reportUploads } from './uploads-report.ts'
import { benchVariants } from './variants.ts'
import { reportVariants } from './variants-report.ts'
import { benchWebhooks, reportWebhooks } from './webhooks.ts'
import { benchWorkers } from './workers.ts'
import { reportWorkers } from './workers-report.ts'

// npm run bench -- SUITE [--short]. Prints Markdown; bench/RESULTS.md holds the last run.

const log = (text: string) => console.error(text)
const suites: Readonly<Record<string, (short: boolean) => Promise<string>>> = {
  async listing(short) {
    const extent = short
      ? { rounds: 1, seconds: 0.2, large: 5_000, buckets: 5 }
      : { rounds: 5, seconds: 3, large: 1_000_000, buckets: 1000 }
    return reportListing(await benchListing(extent, log))
  },

  async items(short) {
    const extent = short
      ? { rounds: 1, batch: 2, small: 5_000, large: 20_000, lines: 1_000, seconds: 0.2 }
      : { rounds: 20, batch: 10, small: 1_000_000, large: 10_000_000, lines: 400_000, seconds: 20 }
    return reportItems(await benchItems(extent, log))
  },

  async streams(short) {
    const extent = short
      ? { rounds: 1, seconds: 0.2, large: 5_000, small: 1_000, few: 5, many: 10, unread: 20 }
      : { rounds: 3, seconds: 5, large: 1_000_000, small: 20_000, few: 50, many: 200, unread: 900 }
    return reportStreams(await benchStreams(extent, log))
  },

  async uploads(short) {
    const extent = short
      ? {
          rounds: 1,
          seconds: 0.2,
          listingSeconds: 0.2,
          large: 10_000_000,
          largeDownload: 1_000_000,
          open: 20,
        }
      : {
          rounds: 5,
          seconds: 3,
          listingSeconds: 10,
          large: 1_000_000_000,
          largeDownload: 100_000_000,
          open: 5000,
        }
    return reportUploads(await benchUploads(extent, log))
  },

  async downloads(short) {
    const extent = short
      ? { rounds: 1, seconds: 0.2, many: 60, thumbnails: 4, slow: 40 }
      : { rounds: 3, seconds: 3, many: 50_000, thumbnails: 1000, slow: 1000 }
    return reportDownloads(await benchDownloads(extent, log))
  },

  async gallery(short) {
    const extent = short ? { rounds: 1, files: 60 } : { rounds: 5, files: 2000 }
    return reportGallery(await benchGallery(extent, log))
  },

  async variants(short) {
    const extent = short
      ? { rounds: 1, seconds: 0.2, folder: 4, beside: 4, uploads: 2, width: 800 }
      : { rounds: 3, seconds: 3, folder: 500, beside: 100, uploads: 200, width: 4000 }
    return reportVariants(await benchVariants(extent, log))
  },

  async postgres(short) {
    const extent = short
      ? { rounds: 1, seconds: 0.2, large: 5_000 }
      : { rounds: 2, seconds: 2, large: 1_000_000 }
    return reportPostgres(await benchPostgres(extent, log))
  },

  async s3(short) {
    const extent = short ? { rounds: 1, size: 10_000_000 } : { rounds: 3, size: 100_000_000 }
    return reportS3(await benchS3(extent, log))
  },

  async objects(short) {
    const extent = short
      ? { rounds: 1, seconds: 0.2, large: 10_000_000, keys: 50 }
      : { rounds: 3, seconds: 3, large: 100_000_000, keys: 20_000 }
    return reportObjects(await benchObjects(extent, log))
  },

  async lists(short) {
    const extent = short
      ? { keys: 3_000, lists: 5, seconds: 0.2 }
      : { keys: 1_000_000, lists: 1_000, seconds: 10 }
    return reportLists(await benchLists(extent, log))
  },

  async start(short) {
    const extent = short ? { rounds: 1, seconds: 1 } : { rounds: 5, seconds: 60 }
    return reportStart(await benchStart(extent, log))
  },

  async webhooks(short) {
    const extent = short
      ? { rounds: 1, changes: 300, uploads: 3 }
      : { rounds: 5, changes: 10_000, uploads: 200 }
    return reportWebhooks(await benchWebhooks(extent, log))
  },

  async feed(short) {
    const extent = short
      ? { rounds: 1, seconds: 0.2, uploads: 3, idleStreams: 20, changes: 300 }
      : { rounds: 3, seconds: 3, uploads: 200, idleStreams: 1_000, changes: 10_000 }
    return reportFeed(await benchFeed(extent, log))
  },

  async memory(short) {
    const extent = short
      ? { seconds: 5, width: 800, files: 2_000 }
      : { seconds: 600, width: 4000, files: 20_000 }
    return reportMemory(await benchMemory(extent, log))
  },

  async sync(short) {
    return reportSync(await benchSync({ files: short ? 500 : 100_000 }, log))
  },

  async tenants(short) {
    const extent = short
      ? { buckets: 40, lists: 10, items: 300, pages: 20 }
      : { buckets: 10_000, lists: 1_000, items: 1_000_000, pages: 5_000 }
    return reportTenants(await benchTenants(extent, log))
  },

  async workers(short) {
    const extent = short ? { rounds: 1, seconds: 0.2 } : { rounds: 3, seconds: 3 }
    return reportWorkers(await benchWorkers(extent, log))
  },
}

const [name = '', form] = process.argv.slice(2)
const suite = suites[name]
if (suite === undefined || (form !== undefined && form !== '--short')) {
  console.error(`Usage: npm run bench -- ${Object.keys(suites).join('|')} [--short]`)
  process.exit(2)
}
const short = form === '--short'
const figures = `${describeMachine()}\n\n${await suite(short)}`
console.log(figures)
if (!short && keepFigures(name, figures)) console.error('Kept in bench/RESULTS.md')
