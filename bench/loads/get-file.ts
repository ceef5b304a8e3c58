import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'

// Gets one large file twice, and prints the milliseconds of the second time. Arguments: a URL; bytes.
const [url = '', bytes] = process.argv.slice(2)

async function fetchOnce(): Promise<void> {
  const [response]: IncomingMessage[] = await once(get(url), 'response')
  if (!response) throw new Error('no response')
  let read = 0
  for await (const chunk of response) read += chunk.length
  if (read !== Number(bytes)) throw new Error(`got ${read} bytes`)
}

await fetchOnce()
const startedAt = performance.now()
await fetchOnce()
console.log(JSON.stringify({ milliseconds: performance.now() - startedAt }))
process.exit(0)
