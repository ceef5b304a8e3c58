// Runs in the project that has the packages installed, by plain Node.js.
import { createClient } from '@mediabucket/client'

const [url, token] = process.argv.slice(2)
const client = createClient({ url, token })
const media = await client.upload(new File(['from node'], 'node.txt', { type: 'text/plain' }))
const text = await (await client.get(media.url)).text()
const { bucket } = await client.whoami()
await client.delete(media.id)
console.log(JSON.stringify({ bucket, filename: media.filename, text }))
