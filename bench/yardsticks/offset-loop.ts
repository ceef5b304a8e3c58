import { Client } from 'pg'

// The yardstick of deep pages: counts all items of a bucket and skips those before the page, one page after another.
// Arguments: the URL of a database, a bucket, the first and the last page, seconds.
const [url = '', bucket, first, last, seconds] = process.argv.slice(2)
const client = new Client({ connectionString: url })
await client.connect()
const startedAt = performance.now()
const end = startedAt + Number(seconds) * 1000
const taken: number[] = []
do {
  const start = performance.now()
  const page = Number(first) + (taken.length % (Number(last) - Number(first) + 1))
  await client.query({
    name: 'count',
    text: 'SELECT count(*) FROM items WHERE bucket_id = $1',
    values: [bucket],
  })
  const text = 'SELECT id, extension FROM items WHERE bucket_id = $1 ORDER BY seq LIMIT 10 OFFSET $2'
  const { rows } = await client.query({ name: 'page', text, values: [bucket, (page - 1) * 10] })
  if (rows.length !== 10) throw new Error(`page ${page} has ${rows.length} rows`)
  taken.push(performance.now() - start)
} while (performance.now() < end)
await client.end()
console.log(JSON.stringify({ taken, seconds: (performance.now() - startedAt) / 1000 }))
