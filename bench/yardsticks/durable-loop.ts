import { mkdir, open, rename } from 'node:fs/promises'
import { join } from 'node:path'

// The bare yardstick of durable uploads: files written, synced, renamed and their directory synced, so many at a time.
// Arguments: a directory, how many at a time, bytes of each file, seconds.
const [directory = '', atOnce, size, seconds] = process.argv.slice(2)
const bytes = Buffer.alloc(Number(size), '0123456789')
await mkdir(directory)

const begun = performance.now()
const end = begun + Number(seconds) * 1000
const taken: number[] = []

async function keepWriting(worker: number): Promise<void> {
  for (let count = 0; performance.now() < end; count += 1) {
    const start = performance.now()
    const path = join(directory, `${worker}-${count}`)
    const file = await open(`${path}.part`, 'wx')
    await file.write(bytes)
    await file.sync()
    await file.close()
    await rename(`${path}.part`, path)
    const parent = await open(directory)
    await parent.sync()
    await parent.close()
    taken.push(performance.now() - start)
  }
}

await Promise.all(Array.from({ length: Number(atOnce) }, (_, worker) => keepWriting(worker)))
const elapsed = (performance.now() - begun) / 1000
const { user, system } = process.cpuUsage()
const sorted = taken.toSorted((a, b) => a - b)
const quantile = (share: number) => sorted[Math.floor(sorted.length * share)]
console.log(
  JSON.stringify({
    count: taken.length,
    seconds: elapsed,
    cpuSeconds: (user + system) / 1e6,
    p50: quantile(0.5),
    p99: quantile(0.99),
  }),
)
