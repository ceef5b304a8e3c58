import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

// Uploads a picture, requests its thumbnail as a browser does as soon as it is stored, and then the same with the next one. Prints the
// milliseconds from each 201 to the complete thumbnail, and of all uploads and thumbnails. The first upload is a warm-up and not counted.
// Arguments: a directory of pictures, the URL of the server, a token, the number of uploads.
const [directory = '', base = '', token = '', count] = process.argv.slice(2)
const pictures = readdirSync(directory).map((name) => join(directory, name))
const taken: number[] = []
let startedAt = performance.now()

for (let number = 0; number <= Number(count); number += 1) {
  const body = readFileSync(pictures[number % pictures.length] ?? '')
  const headers = { authorization: `Bearer ${token}` }
  const stored = await fetch(`${base}/api/media`, { method: 'POST', body, headers })
  const storedAt = performance.now()
  await stored.arrayBuffer()
  const location = stored.headers.get('location')
  if (stored.status !== 201 || location === null) throw new Error(`an upload got ${stored.status}`)
  const url = `${location.replace('/api/media/', '/media/')}?variant=thumb`
  const thumb = await fetch(url, { headers: { accept: 'image/avif,image/webp,image/*,*/*;q=0.8' } })
  await thumb.arrayBuffer()
  if (thumb.status !== 200 || thumb.headers.get('content-type') !== 'image/avif')
    throw new Error(`${url} got ${thumb.status} and ${thumb.headers.get('content-type')}`)
  if (number === 0) startedAt = performance.now()
  else taken.push(performance.now() - storedAt)
}

console.log(
  JSON.stringify({ milliseconds: performance.now() - startedAt, taken: taken.toSorted((a, b) => a - b) }),
)
