import { readFileSync } from 'node:fs'

// Fetches every URL that stands in a file as JSON, so many at a time; prints how long each took, and all together.
// Arguments: the file, how many at a time.
const [file = '', atOnce] = process.argv.slice(2)
const urls: string[] = JSON.parse(readFileSync(file, 'utf8'))
const waiting = urls.values()
const taken: number[] = []

async function keepFetching(): Promise<void> {
  for (const url of waiting) {
    const start = performance.now()
    const answer = await fetch(url)
    await answer.arrayBuffer()
    if (answer.status !== 200) throw new Error(`${url} was answered ${answer.status}`)
    taken.push(performance.now() - start)
  }
}

const begun = performance.now()
await Promise.all(Array.from({ length: Number(atOnce) }, keepFetching))
console.log(
  JSON.stringify({ milliseconds: performance.now() - begun, taken: taken.toSorted((a, b) => a - b) }),
)
