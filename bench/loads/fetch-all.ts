import { readFileSync } from 'node:fs'

// Fetches the URLs in a JSON file with the given concurrency; prints the milliseconds of each request and in total.
// Arguments: the file, the concurrency.
const [file = '', concurrency] = process.argv.slice(2)
const urls: string[] = JSON.parse(readFileSync(file, 'utf8'))
const waiting = urls.values()
const taken: number[] = []

async function keepFetching(): Promise<void> {
  for (const url of waiting) {
    const start = performance.now()
    const response = await fetch(url)
    await response.arrayBuffer()
    if (response.status !== 200) throw new Error(`${url} got ${response.status}`)
    taken.push(performance.now() - start)
  }
}

const startedAt = performance.now()
await Promise.all(Array.from({ length: Number(concurrency) }, keepFetching))
console.log(
  JSON.stringify({ milliseconds: performance.now() - startedAt, taken: taken.toSorted((a, b) => a - b) }),
)
