import type { SystemCall } from './system-calls.ts'

// Checks the order of a durable upload (docs/architecture/uploads.md) in a trace. Each function yields the violations.

const isSync = ({ name }: SystemCall) => name === 'fsync' || name === 'fdatasync'
const isWrite = ({ name }: SystemCall) => /^p?writev?(64)?$|^send/.test(name)

/** Whether the call uses a descriptor of this path. */
const on = (path: string) => {
  const pattern = new RegExp(`^\\d+<${path.replaceAll('.', '\\.')}(\\(deleted\\))?>`)
  return ({ args }: SystemCall) => pattern.test(args)
}

const succeeded = ({ result }: SystemCall) => result >= 0

/** Matches writes to the write-ahead log that contain all of these words and none of those. */
const logged =
  (words: readonly string[], without: readonly string[] = []) =>
  (call: SystemCall) =>
    isWrite(call) &&
    /catalog\.db-wal>/.test(call.args) &&
    words.every((word) => call.args.includes(word)) &&
    !without.some((word) => call.args.includes(word))

/** Matches writes of the row of an item, which contains its type, and not of its intent. */
const logsItem =
  (itemId: string, without: readonly string[] = []) =>
  (call: SystemCall) =>
    logged([itemId], without)(call) && /text\/plain|application\/octet-stream/.test(call.args)

const syncsLog = (call: SystemCall) => isSync(call) && succeeded(call) && /catalog\.db-wal>/.test(call.args)

const isResponse = (status: number, word: string) => (call: SystemCall) =>
  isWrite(call) && call.args.includes(`HTTP/1.1 ${status}`) && call.args.includes(word)

interface Renamed {
  readonly call: SystemCall
  readonly from: string
  readonly to: string
}

/** The rename to an item's final path. */
function renameTo(calls: readonly SystemCall[], itemId: string): Renamed | null {
  for (const call of calls) {
    const [, from, to] = /"([^"]+)".*"([^"]+)"/.exec(call.args) ?? []
    if (call.name.startsWith('rename') && succeeded(call) && from && to?.endsWith(`/${itemId}`))
      return { call, from, to }
  }
  return null
}

const parentOf = (path: string) => path.slice(0, path.lastIndexOf('/'))

/** The intent is committed and synced before the rename, so that a crash leaves no file without a row. */
function* orderOfIntent(
  calls: readonly SystemCall[],
  { call: rename, to }: Renamed,
  uploadId: string | undefined,
): Generator<string, void> {
  const itemId = to.slice(to.lastIndexOf('/') + 1)
  // The first write with the id of the item, except for those of the row of its upload.
  const written = calls.find(logged([itemId], uploadId === undefined ? [] : [uploadId]))
  const synced = calls.find((call) => written && syncsLog(call) && call.begin > written.end)
  if (!synced || synced.end > rename.begin) yield 'the file was renamed before its intent was synced'
}

/** Sync of the file < rename < sync of its directory and of the directory's entry. Returns the end of the last one. */
function* orderOfFile(
  calls: readonly SystemCall[],
  { call: rename, from, to }: Renamed,
  uploadId?: string,
): Generator<string, number> {
  yield* orderOfIntent(calls, { call: rename, from, to }, uploadId)
  const shard = parentOf(to)
  const lastWrite = calls.findLast((call) => isWrite(call) && (on(from)(call) || on(to)(call)))
  const synced = calls.find(
    (call) =>
      isSync(call) &&
      succeeded(call) &&
      (on(from)(call) || on(to)(call)) &&
      call.begin > (lastWrite?.end ?? 0),
  )
  if (!synced) yield 'the file was not synced after its last write'
  else if (synced.end > rename.begin) yield 'the file was renamed before it was synced'

  const directory = calls.find(
    (call) => isSync(call) && succeeded(call) && on(shard)(call) && call.begin > rename.end,
  )
  if (!directory) yield 'the directory was not synced after the rename'
  const made = calls.find(
    (call) => call.name.startsWith('mkdir') && succeeded(call) && call.args.includes(`"${shard}"`),
  )
  const root = calls.find(
    (call) => made && isSync(call) && succeeded(call) && on(parentOf(shard))(call) && call.begin > made.end,
  )
  if (made && !root) yield 'the entry of a new directory was not synced'
  return Math.max(directory?.end ?? rename.end, root?.end ?? 0)
}

/** The commit of the item: its rows are written to the log and synced. Returns the end of the sync. */
function* orderOfCommit(
  calls: readonly SystemCall[],
  written: SystemCall | undefined,
  durable: number,
): Generator<string, number> {
  if (!written) {
    yield 'the item was not committed'
    return durable
  }
  if (written.begin < durable) yield 'the item was committed before its bytes were in place'
  const synced = calls.find((call) => syncsLog(call) && call.begin > written.end)
  if (!synced) yield 'the commit was not synced'
  return synced?.end ?? 0
}

/** An upload of one request, raw or as a form: file < rename < directory < commit < 201. */
export function* wholeUpload(calls: readonly SystemCall[], itemId: string): Generator<string, void> {
  const renamed = renameTo(calls, itemId)
  if (!renamed) return yield 'the file was not renamed'
  const durable = yield* orderOfFile(calls, renamed)
  const committed = yield* orderOfCommit(calls, calls.find(logsItem(itemId)), durable)
  const response = calls.find(isResponse(201, itemId))
  if (!response) return yield 'there was no response'
  if (response.begin < committed) yield 'the response was sent before the sync of the commit'
}

/** An upload of a file whose bytes are in the catalog: row and bytes < commit < 201. `content` is a part of the bytes. */
export function* inlineUpload(
  calls: readonly SystemCall[],
  { itemId, content }: { readonly itemId: string; readonly content: string },
): Generator<string, void> {
  const bytes = calls.find(logged([content]))
  if (!bytes) return yield 'the bytes were not committed'
  const committed = yield* orderOfCommit(calls, calls.find(logsItem(itemId)), 0)
  const bytesSynced = calls.find((call) => syncsLog(call) && call.begin > bytes.end)
  if (!bytesSynced) yield 'the bytes were not synced'
  const response = calls.find(isResponse(201, itemId))
  if (!response) return yield 'there was no response'
  if (response.begin < Math.max(committed, bytesSynced?.end ?? 0))
    yield 'the response was sent before the sync of the commit'
}

/**
 * A resumable upload: for each chunk bytes < sync < offset < 204. The last chunk follows the order of a raw upload, and
 * its offset is committed together with the item. `content` is a part of bytes that are stored in the catalog.
 */
export function* resumableUpload(
  calls: readonly SystemCall[],
  upload: {
    readonly id: string
    readonly itemId: string
    readonly offsets: readonly number[]
    readonly content?: string
  },
): Generator<string, void> {
  const { id, itemId, offsets, content } = upload
  const onPart = (call: SystemCall) =>
    /^\d+<[^>]*\/uploads\//.test(call.args) && call.args.includes(`/uploads/${id}>`)
  let after = calls.findLast(isResponse(201, id))?.end ?? 0
  for (const [nth, offset] of offsets.entries()) {
    const isLast = nth === offsets.length - 1
    const window = calls.filter(({ begin }) => begin > after)
    const response = window.find(isResponse(204, `upload-offset: ${offset}\\r`))
    if (!response) return yield `there was no response with offset ${offset}`
    const before = window.filter(({ begin }) => begin < response.begin)
    const lastWrite = before.findLast((call) => isWrite(call) && onPart(call))
    const synced = before.find(
      (call) => isSync(call) && succeeded(call) && onPart(call) && call.begin > (lastWrite?.end ?? 0),
    )
    const moved = before.find(logged([id]))
    if (!lastWrite) yield 'a chunk was not written'
    if (!synced) yield 'a chunk was not synced'
    if (!moved) yield 'an offset was not committed'
    else {
      if (synced && moved.begin < synced.end) yield 'the offset was committed before its bytes were synced'
      const logSynced = before.find((call) => syncsLog(call) && call.begin > moved.end)
      if (!logSynced) yield 'the response was sent before the sync of the offset'
      else if (isLast) yield* lastChunk(before, { itemId, id, moved, logSynced, content })
    }
    after = response.end
  }
}

function* lastChunk(
  calls: readonly SystemCall[],
  {
    itemId,
    id,
    moved,
    logSynced,
    content,
  }: {
    itemId: string
    id: string
    moved: SystemCall
    logSynced: SystemCall
    content: string | undefined
  },
): Generator<string, void> {
  if (content === undefined) {
    const renamed = renameTo(calls, itemId)
    if (!renamed) return yield 'the file was not renamed'
    const durable = yield* orderOfFile(calls, renamed, id)
    if (moved.begin < durable) yield 'the upload was finished before its file was durable'
  } else {
    const bytes = calls.find(logged([content]))
    if (!bytes || bytes.begin > logSynced.begin)
      yield 'the offset reached the end before the bytes were committed'
  }
  // The row of an upload contains the item's id; the row of the item does not contain the upload's id.
  const item = calls.find(logsItem(itemId, [id]))
  if (!item || item.begin > logSynced.begin) yield 'the offset reached the end before the item was committed'
}
