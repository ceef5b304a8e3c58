import { createClient } from '../../../packages/client/src/index.ts'
import type { Instance } from '../server-instances.ts'
import type { ObjectScene } from './object-clients.ts'
import { elementsOf, textOf } from './requests.ts'
import { end, sendCompletion } from './upload-clients.ts'
import type { Upload } from './uploads.ts'

/** All unfinished uploads in parts, in pages of any length: their ids with their keys. */
async function listUploads({ door, record }: ObjectScene, instance: Instance): Promise<Map<string, string>> {
  const found = new Map<string, string>()
  const limit = 1 + record.random(20)
  let last: { readonly key: string; readonly id: string } | null = null
  for (;;) {
    const { text, code }: { text: string; code: string | null } = await door.send(instance, 'GET', null, {
      query: {
        ...{ uploads: '', 'max-uploads': limit },
        ...(last && { 'key-marker': last.key, 'upload-id-marker': last.id }),
      },
    })
    if (code !== null) throw new Error(`a list of uploads gets ${code}`)
    for (const upload of elementsOf(text, 'Upload')) {
      const [key, id] = [textOf(upload, 'Key'), textOf(upload, 'UploadId')]
      if (found.has(id)) record.fault('halfVisible', `the upload ${id} is listed twice`)
      found.set(id, key)
    }
    if (textOf(text, 'IsTruncated') !== 'true') return found
    last = { key: textOf(text, 'NextKeyMarker'), id: textOf(text, 'NextUploadIdMarker') }
  }
}

interface ListedPart {
  readonly etag: string
  readonly size: number
}

/** All parts of an upload by their numbers, in pages of any length. */
async function listParts(
  { door, record }: ObjectScene,
  instance: Instance,
  key: string,
  id: string,
): Promise<Map<number, ListedPart>> {
  const found = new Map<number, ListedPart>()
  const limit = 1 + record.random(4)
  for (let after = 0; ; ) {
    const answer = await door.send(instance, 'GET', key, {
      query: { uploadId: id, 'max-parts': limit, 'part-number-marker': after },
    })
    if (answer.code !== null) record.fault('lost', `the parts of ${id} get ${answer.code}`)
    for (const part of elementsOf(answer.text, 'Part')) {
      const number = Number(textOf(part, 'PartNumber'))
      if (found.has(number)) record.fault('halfVisible', `part ${number} of ${id} is listed twice`)
      const [etag, size] = [textOf(part, 'ETag').replaceAll('"', ''), Number(textOf(part, 'Size'))]
      found.set(number, { etag, size })
    }
    if (textOf(answer.text, 'IsTruncated') !== 'true') return found
    after = Number(textOf(answer.text, 'NextPartNumberMarker'))
  }
}

/** Compares the parts of an unfinished upload with those that were sent. */
function compareParts({ record }: ObjectScene, upload: Upload, found: ReadonlyMap<number, ListedPart>): void {
  for (const number of found.keys())
    if (!upload.parts.has(number)) record.fault('halfVisible', `${upload.id} has a part ${number}`)
  for (const [number, register] of upload.parts) {
    const listed = found.get(number)
    const window = { start: Number.POSITIVE_INFINITY, end: Number.POSITIVE_INFINITY }
    const possible = register.possible(window)
    const value = possible.find((part) => part?.etag === listed?.etag && part?.size === listed?.size)
    if (value === undefined)
      record.fault('lost', `part ${number} of ${upload.id} is ${listed?.etag}, of ${possible.length} values`)
    else register.observed(value)
  }
}

/** An upload that is not listed: some of the completions without a response are repeated, of which at most one succeeds. */
async function settleEnded(scene: ObjectScene, instance: Instance, upload: Upload): Promise<void> {
  const { record } = scene
  if (upload.state !== 'open' && upload.state !== 'ended') return
  if (!upload.mayHaveEnded)
    return record.fault('lost', `the upload ${upload.id} is not listed, and was not ended`)
  const lost = upload.completions.filter(({ pending }) => pending > 0)
  if (record.random(2)) {
    // Nobody asks again.
    upload.state = 'ended'
    return
  }
  const abortions = upload.openAbortions
  for (const completion of lost) {
    const status = await sendCompletion(scene, instance, upload, completion)
    if (status === 200) return
    if (status !== 404) record.fault('lost', `a repeated completion of ${upload.id} gets ${status}`)
  }
  if (abortions === 0 && lost.length > 0)
    record.fault('lost', `${upload.id} is neither open nor completed, and was not aborted`)
  end(upload, 'aborted', null)
}

/** Compares the unfinished uploads of an idle service with the record, and settles what was unknown. `isOther` is whether another client uses a key. */
export async function checkUploads(
  scene: ObjectScene,
  instance: Instance,
  isOther: (key: string) => boolean,
): Promise<void> {
  const { door, record } = scene
  const listed = await listUploads(scene, instance)
  const reserved = { items: 0, bytes: 0 }
  const count = (parts: ReadonlyMap<number, ListedPart>) => {
    reserved.items += 1
    for (const { size } of parts.values()) reserved.bytes += size
  }
  for (const upload of record.uploads) {
    if (!listed.delete(upload.id)) await settleEnded(scene, instance, upload)
    else if (upload.state !== 'open')
      record.fault('returned', `the upload ${upload.id} is ${upload.state} and is listed`)
    else {
      // Nothing without a response has happened.
      for (const { write } of upload.completions) if (write.state === 'open') write.settle('refused')
      upload.completions = []
      upload.openAbortions = 0
      upload.settle()
      const parts = await listParts(scene, instance, upload.key.key, upload.id)
      compareParts(scene, upload, parts)
      count(parts)
    }
  }
  for (const [id, key] of listed) {
    if (isOther(key)) {
      count(await listParts(scene, instance, key, id))
      continue
    }
    record.lostCreations -= 1
    const { status } = await door.send(instance, 'DELETE', key, { query: { uploadId: id } })
    if (status !== 204) record.fault('lost', `the end of ${id} gets ${status}`)
  }
  if (record.lostCreations < 0)
    record.fault('halfVisible', 'there are more uploads in parts than were created')
  record.lostCreations = 0
  record.forgetEnded()
  const bucket = await createClient({ url: instance.server.url, token: scene.token }).bucket()
  if (bucket.reserved_items !== reserved.items || bucket.reserved_bytes !== reserved.bytes)
    record.fault(
      'halfVisible',
      `${bucket.reserved_items} items and ${bucket.reserved_bytes} bytes are reserved; unfinished uploads have ${reserved.items} and ${reserved.bytes}`,
    )
}
