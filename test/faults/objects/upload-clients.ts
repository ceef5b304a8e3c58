import type { Instance } from '../server-instances.ts'
import { bytesOf, etagOfParts, md5Of, newPiece, partSize, versionOf } from './contents.ts'
import { metadataOf, type ObjectClient, type ObjectScene } from './object-clients.ts'
import type { Window } from './register.ts'
import { type Answer, textOf } from './requests.ts'
import { type Completion, type Part, Upload } from './uploads.ts'

/** The numbers of the parts of an upload; the last one is small. */
const numbers = { small: [3, 7], large: [1, 2, 3] } as const

/** Starts an upload of an object in parts. */
async function createUpload({ door, record }: ObjectScene, instance: Instance): Promise<number> {
  const key = record.anyKey()
  const name = record.newName()
  record.lostCreations += 1
  const answer = await door.send(instance, 'POST', key.key, {
    query: { uploads: '' },
    headers: metadataOf(name),
  })
  if (answer.code === null || answer.status !== 500) record.lostCreations -= 1
  if (answer.code !== null) return answer.status
  record.acknowledged()
  record.uploads.push(new Upload(textOf(answer.text, 'UploadId'), key, name, record.random(4) === 0))
  return answer.status
}

const anyUpload = ({ record }: ObjectScene): Upload | undefined =>
  record.any(record.uploads.filter(({ state }) => state === 'open'))

const queryOf = ({ id }: Upload) => ({ uploadId: id })

/** A response that an upload does not exist must follow its end. */
function checkUnknown({ record }: ObjectScene, upload: Upload, { code }: Answer): void {
  if (code === 'NoSuchUpload' && !upload.mayHaveEnded)
    record.fault('lost', `the upload ${upload.id} of ${upload.key.key} is unknown, and was not ended`)
}

/** Sends a part, in any order, also again. */
async function putPart(scene: ObjectScene, instance: Instance): Promise<number> {
  const { door, record } = scene
  const upload = anyUpload(scene)
  if (upload === undefined) return createUpload(scene, instance)
  const number = record.any(numbers[upload.isLarge ? 'large' : 'small']) ?? 1
  const register = upload.part(number)
  const isLast = number >= 3
  const again = record.random(4) === 0 ? lastOf(upload, number) : null
  const pieces = again?.pieces ?? [newPiece(isLast ? 1 + record.random(90_000) : partSize)]
  const bytes = bytesOf(pieces)
  const part: Part = { number, pieces, etag: md5Of(bytes), size: bytes.length }
  const write = register.begin(part)
  const answer = await door.send(instance, 'PUT', upload.key.key, {
    query: { ...queryOf(upload), partNumber: number },
    body: bytes,
  })
  write.settle(answer.code === null ? 'acknowledged' : answer.status === 500 ? 'unknown' : 'refused')
  checkUnknown(scene, upload, answer)
  if (answer.code === null) {
    record.acknowledged()
    if (answer.etag !== part.etag)
      record.fault('halfVisible', `a part was stored with the tag ${answer.etag}`)
  }
  return answer.status
}

const always: Window = { start: Number.POSITIVE_INFINITY, end: Number.POSITIVE_INFINITY }

const lastOf = (upload: Upload, number: number): Part | null =>
  upload.parts.get(number)?.certain(always) ?? null

/** Makes a part of an object. */
async function copyPart(scene: ObjectScene, instance: Instance): Promise<number> {
  const { door, record } = scene
  const upload = anyUpload(scene)
  const source = record.anyKey()
  const version = source.register.certain(always)
  if (upload === undefined || upload.isLarge || !version || version.size === 0)
    return putPart(scene, instance)
  const number = record.any(numbers.small) ?? 3
  const pieces = version.pieces
  const part: Part = { number, pieces, etag: md5Of(bytesOf(pieces)), size: version.size }
  const write = upload.part(number).begin(part)
  const answer = await door.send(instance, 'PUT', upload.key.key, {
    query: { ...queryOf(upload), partNumber: number },
    headers: {
      'x-amz-copy-source': `/${door.bucket}/${source.key.split('/').map(encodeURIComponent).join('/')}`,
      'x-amz-copy-source-if-match': version.etag,
    },
  })
  write.settle(answer.code === null ? 'acknowledged' : answer.status === 500 ? 'unknown' : 'refused')
  checkUnknown(scene, upload, answer)
  if (answer.code === null && answer.etag !== part.etag)
    record.fault('halfVisible', `a copied part has the tag ${answer.etag}`)
  return answer.status
}

/** The parts that an object may consist of: those that are certainly stored, of which each but the last is large. */
function partsToName({ record }: ObjectScene, upload: Upload): readonly Part[] {
  const stored = [...upload.parts.keys()]
    .sort((one, other) => one - other)
    .flatMap((number) => lastOf(upload, number) ?? [])
  const last = record.any(stored)
  return stored.filter(
    (part) => part === last || (part.size >= partSize && last !== undefined && part.number < last.number),
  )
}

async function complete(scene: ObjectScene, instance: Instance): Promise<number> {
  const { record } = scene
  const upload = anyUpload(scene)
  if (upload === undefined) return createUpload(scene, instance)
  // A client whose connection was lost sends the same request again.
  const lost = record.random(2) ? record.any(upload.completions) : undefined
  if (lost !== undefined) return sendCompletion(scene, instance, upload, lost)
  const parts = partsToName(scene, upload)
  if (parts.length === 0) return putPart(scene, instance)
  const etag = etagOfParts(parts.map((part) => part.etag))
  const known = upload.completions.find(({ version }) => version.etag === etag)
  if (known !== undefined) return sendCompletion(scene, instance, upload, known)
  const pieces = parts.flatMap((part) => part.pieces)
  const version = record.know(upload.key, versionOf(upload.name, pieces, etag))
  const completion = { version, parts, write: upload.key.register.begin(version), pending: 0 }
  upload.completions = [...upload.completions, completion]
  return sendCompletion(scene, instance, upload, completion)
}

/** Sends a completion, also again: then it gets the same response. Returns the status; that of the error in a 200. */
export async function sendCompletion(
  scene: ObjectScene,
  instance: Instance,
  upload: Upload,
  completion: Completion,
): Promise<number> {
  const { door, record } = scene
  const { version, parts, write } = completion
  const list = parts.map(
    ({ number, etag }) => `<Part><PartNumber>${number}</PartNumber><ETag>"${etag}"</ETag></Part>`,
  )
  completion.pending += 1
  const answer = await door.send(instance, 'POST', upload.key.key, {
    query: queryOf(upload),
    body: `<CompleteMultipartUpload>${list.join('')}</CompleteMultipartUpload>`,
  })
  const { code, status } = answer
  if (code === null) {
    completion.pending -= 1
    if (write.state === 'refused')
      record.fault('returned', `${upload.id} was ended otherwise, and is completed`)
    if (answer.etag !== version.etag)
      record.fault('halfVisible', `an upload in parts has the tag ${answer.etag}, not ${version.etag}`)
    if (write.state === 'open') {
      write.settle('acknowledged')
      record.acknowledged()
    }
    end(upload, 'completed', completion)
    return status
  }
  // The commit may have been before it.
  if (status === 500 || code === 'InternalError') return 500
  completion.pending -= 1
  checkUnknown(scene, upload, answer)
  if (code === 'InvalidPart') checkParts(scene, upload, parts, answer)
  if (completion.pending === 0 && write.state === 'open') {
    write.settle('refused')
    upload.completions = upload.completions.filter((other) => other !== completion)
  }
  if (code === 'NoSuchUpload' && upload.state === 'open') upload.state = 'ended'
  return status === 200 ? 500 : status
}

/** What it is known to have become. All other requests that would have ended it have not. */
export function end(upload: Upload, state: 'completed' | 'aborted', by: Completion | null): void {
  upload.state = state
  for (const other of upload.completions)
    if (other !== by && other.write.state === 'open') other.write.settle('refused')
}

function checkParts({ record }: ObjectScene, upload: Upload, parts: readonly Part[], answer: Answer): void {
  if (parts.every((part) => upload.part(part.number).certain(answer) === part))
    record.fault('lost', `a part of ${upload.id} is not stored: ${answer.text}`)
}

async function abort(scene: ObjectScene, instance: Instance): Promise<number> {
  const { record } = scene
  const upload = record.random(3) === 0 ? anyUpload(scene) : undefined
  return upload === undefined ? createUpload(scene, instance) : sendAbortion(scene, instance, upload)
}

async function sendAbortion(scene: ObjectScene, instance: Instance, upload: Upload): Promise<number> {
  const { door, record } = scene
  upload.openAbortions += 1
  const answer = await door.send(instance, 'DELETE', upload.key.key, { query: queryOf(upload) })
  if (answer.code !== null && answer.status === 500) return answer.status
  upload.openAbortions -= 1
  checkUnknown(scene, upload, answer)
  if (answer.code === null) {
    if (upload.state === 'completed') record.fault('lost', `${upload.id} was completed, and is aborted`)
    end(upload, 'aborted', null)
  } else if (answer.code === 'NoSuchUpload' && upload.state === 'open') upload.state = 'ended'
  return answer.status
}

/** All clients of uploads in parts. */
export const uploadClients = (scene: ObjectScene) =>
  ({
    createUpload: (instance: Instance) => createUpload(scene, instance),
    putPart: (instance: Instance) => putPart(scene, instance),
    copyPart: (instance: Instance) => copyPart(scene, instance),
    complete: (instance: Instance) => complete(scene, instance),
    abort: (instance: Instance) => abort(scene, instance),
  }) satisfies Record<string, ObjectClient>
