import { existsSync } from 'node:fs'
import { expect, test } from 'vitest'
import { filePart, formBytes, formType } from '../harness/form.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { chunkType, tusOf } from '../harness/tus.ts'
import { until } from '../harness/until.ts'
import { blobPath } from '../harness/upload.ts'
import { readItem } from '../harness/wire.ts'
import { brokenOrders } from './orders.ts'
import { withBrokenOrder } from './preload.ts'
import { inlineUpload, resumableUpload, wholeUpload } from './sync-order.ts'
import { canTrace, traceServer } from './system-calls.ts'

// kill -9 does not clear the page cache, so it cannot detect a missing sync. A trace of system calls does.

const ifTraced = test.skipIf(process.env['CI'] === undefined && !(await canTrace()))

const bytes = new Uint8Array(150_000).fill(120)

/** The start of a file that is stored in the catalog. */
const content = {
  raw: 'the first small file',
  resumable: 'the second small file',
  whole: 'the third small file',
}
const small = (start: string) => Buffer.from(start.padEnd(3_000, '.'))

/** Uploads in every way under a trace; returns the violations of the order for each way. */
async function outOfOrder(settings: Record<string, string> = {}) {
  await using server = await startServer(settings)
  // The first use of a token is recorded in a commit of its own.
  await server.request('/api/media')
  await using trace = await traceServer(server)
  const inline = await post(server, small(content.raw), 'text/plain')
  const whole = await uploadWhole(server, small(content.whole))
  const raw = await post(server, bytes, 'text/plain')
  const form = await post(server, formBytes(filePart('a.txt', bytes)), formType)
  const resumable = await uploadInChunks(server, bytes, [50_000, 100_000])
  const inlineResumable = await uploadInChunks(server, small(content.resumable), [1_000])
  // Delayed calls are in the trace too.
  const ids = [raw.id, form.id, resumable.itemId]
  await until('all files are renamed', () => ids.every((id) => existsSync(blobPath(server, id))))
  // A call is written to the trace when its thread continues, which another response proves.
  await server.request('/healthz')
  const calls = await trace.calls()
  return {
    inline: [
      ...inlineUpload(calls, { itemId: inline.id, content: content.raw }),
      ...inlineUpload(calls, { itemId: whole, content: content.whole }),
    ],
    raw: [...wholeUpload(calls, raw.id)],
    form: [...wholeUpload(calls, form.id)],
    resumable: [...resumableUpload(calls, resumable)],
    inlineResumable: [...resumableUpload(calls, { ...inlineResumable, content: content.resumable })],
  }
}

const post = async (server: TestServer, body: Uint8Array<ArrayBuffer>, type: string) =>
  readItem(await server.request('/api/media', { method: 'POST', body, headers: { 'content-type': type } }))

/** A resumable upload in one request. Returns the id of its item. */
async function uploadWhole(server: TestServer, bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const headers = { 'upload-length': `${bytes.length}`, 'content-type': chunkType }
  const response = await tusOf(server).send('POST', '/api/uploads', headers, bytes)
  return response.headers.get('content-location')?.split('/').at(-1) ?? ''
}

async function uploadInChunks(server: TestServer, bytes: Uint8Array<ArrayBuffer>, first: readonly number[]) {
  const tus = tusOf(server)
  const url = await tus.createWithLength(bytes.length)
  const offsets = [...first, bytes.length]
  let from = 0
  let location = ''
  for (const offset of offsets) {
    const { headers } = await tus.sendChunk(url, from, bytes.subarray(from, offset))
    location = headers.get('content-location') ?? ''
    from = offset
  }
  return { id: url.split('/').at(-1) ?? '', itemId: location.split('/').at(-1) ?? '', offsets }
}

ifTraced(
  'U1, R6 sync of the file and of its intent < rename < sync of the directory < sync of the commit < response, in every way to upload',
  async () => {
    expect(await outOfOrder()).toEqual({ inline: [], raw: [], form: [], resumable: [], inlineResumable: [] })
  },
)

/** Violations that the trace must show for each broken order. */
const shown: Readonly<Record<(typeof brokenOrders)[number], object>> = {
  'no sync of the file': {
    inline: [],
    raw: ['the file was not synced after its last write'],
    form: ['the file was not synced after its last write'],
    resumable: expect.arrayContaining(['a chunk was not synced']),
    inlineResumable: expect.arrayContaining(['a chunk was not synced']),
  },
  'rename before the intent': {
    inline: [],
    raw: ['the file was renamed before its intent was synced'],
    form: ['the file was renamed before its intent was synced'],
    resumable: ['the file was renamed before its intent was synced'],
    inlineResumable: [],
  },
  'no sync of the directory': {
    inline: [],
    raw: ['the directory was not synced after the rename'],
    form: ['the directory was not synced after the rename'],
    resumable: ['the directory was not synced after the rename'],
    inlineResumable: [],
  },
  'no sync of a new directory': {
    inline: [],
    raw: ['the entry of a new directory was not synced'],
    form: ['the entry of a new directory was not synced'],
    resumable: ['the entry of a new directory was not synced'],
    inlineResumable: [],
  },
  'rename before sync': {
    inline: [],
    raw: ['the file was renamed before it was synced'],
    form: ['the file was renamed before it was synced'],
    resumable: expect.arrayContaining(['the file was renamed before it was synced']),
    inlineResumable: expect.arrayContaining(['a chunk was not synced']),
  },
  'commit before rename': {
    inline: [],
    raw: expect.arrayContaining(['the item was committed before its bytes were in place']),
    form: expect.arrayContaining(['the item was committed before its bytes were in place']),
    resumable: expect.arrayContaining(['the file was not renamed']),
    inlineResumable: [],
  },
  'commit without sync': {
    inline: expect.arrayContaining(['the commit was not synced']),
    raw: ['the file was renamed before its intent was synced', 'the commit was not synced'],
    form: ['the file was renamed before its intent was synced', 'the commit was not synced'],
    resumable: expect.arrayContaining(['the response was sent before the sync of the offset']),
    inlineResumable: expect.arrayContaining(['the response was sent before the sync of the offset']),
  },
  'offset before sync': {
    inline: [],
    raw: [],
    form: [],
    resumable: expect.arrayContaining(['a chunk was not synced']),
    inlineResumable: expect.arrayContaining(['a chunk was not synced']),
  },
  'item after offset': {
    inline: [],
    raw: [],
    form: [],
    resumable: expect.arrayContaining(['the offset reached the end before the item was committed']),
    inlineResumable: expect.arrayContaining(['the offset reached the end before the item was committed']),
  },
}

ifTraced.each(brokenOrders)('R6 the trace detects a broken order: %s', async (order) => {
  expect(await outOfOrder(withBrokenOrder(order))).toEqual(shown[order])
})
