import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import sharp from 'sharp'

// The minimal yardstick of thumbnails: resizes every picture of a directory as the service does, and discards it.
// Arguments: the directory, the concurrency, pixels of the longer side.
const [directory = '', atOnce, side] = process.argv.slice(2)
sharp.cache(false)
sharp.concurrency(1)
const names = readdirSync(directory)
const waiting = names.values()
const taken: number[] = []

async function keepShrinking(): Promise<void> {
  for (const name of waiting) {
    const start = performance.now()
    await sharp(join(directory, name), { sequentialRead: true, autoOrient: true, failOn: 'error' })
      .resize({ width: Number(side), height: Number(side), fit: 'inside', withoutEnlargement: true })
      .webp()
      .toBuffer()
    taken.push(performance.now() - start)
  }
}

const startedAt = performance.now()
const before = process.cpuUsage()
await Promise.all(Array.from({ length: Number(atOnce) }, keepShrinking))
const { user, system } = process.cpuUsage(before)
console.log(
  JSON.stringify({
    milliseconds: performance.now() - startedAt,
    cpuSeconds: (user + system) / 1e6,
    taken: taken.toSorted((a, b) => a - b),
  }),
)
