import { mkdir, open, rename } from 'node:fs/promises'
import { join } from 'node:path'

// The minimal yardstick of durable uploads: concurrently writes, syncs and renames files and syncs their directory.
// Arguments: a directory, the concurrency, bytes of each file, seconds.
const [directory = '', atOnce, size, seconds] = process.argv.slice(2)
const bytes = Buffer.alloc(Number(size), '0123456789')
await mkdir(directory)

const startedAt = performance.now()
const end = startedAt + Number(seconds) * 1000
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
const elapsed = (performance.now() - startedAt) / 1000
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
