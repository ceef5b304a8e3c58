import { randomBytes } from 'node:crypto'
import { Client } from 'pg'

// The yardstick of small uploads to PostgreSQL: inserts rows and bytes in transactions, one after another, on one connection that sends
// the statements of a transaction at once. Arguments: the URL of a database with the tables, a bucket, rows of each transaction, bytes, seconds.
const [url = '', bucket, rows, size, seconds] = process.argv.slice(2)
const client = new Client({ connectionString: url, pipeline: true })
await client.connect()
const bytes = Buffer.alloc(Number(size), '0123456789')
const hash = Buffer.alloc(32)
const startedAt = performance.now()
const end = startedAt + Number(seconds) * 1000
const taken: number[] = []
let count = 0
const addBytes = 'INSERT INTO contents (id, bucket_id, bytes) VALUES ($1, $2, $3)'
const addRow = `INSERT INTO items
  (bucket_id, seq, id, extension, filename, content_type, size, sha256, created_at, content_id)
  VALUES ($1, $2, $3, 'bin', 'file.bin', 'application/octet-stream', $4, $5, $6, $7)`
const { rows: found } = await client.query(
  'SELECT coalesce(max(seq), 0) + 1 AS next, (SELECT coalesce(max(id), 0) + 1 FROM contents) AS content FROM items',
)
const [nextSeq, nextContent] = [Number(found[0]?.next), Number(found[0]?.content)]
do {
  const start = performance.now()
  const sent: Promise<unknown>[] = [client.query('BEGIN')]
  for (let row = 0; row < Number(rows); row += 1, count += 1) {
    const content = nextContent + count
    const id = randomBytes(14).toString('hex')
    sent.push(
      client.query({ name: 'bytes', text: addBytes, values: [content, bucket, bytes] }),
      client.query({
        name: 'row',
        text: addRow,
        values: [bucket, nextSeq + count, id, size, hash, Date.now(), content],
      }),
    )
  }
  sent.push(client.query('COMMIT'))
  await Promise.all(sent)
  taken.push(performance.now() - start)
} while (performance.now() < end)
await client.end()
console.log(JSON.stringify({ taken, count, seconds: (performance.now() - startedAt) / 1000 }))
