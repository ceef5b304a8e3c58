import { randomUUID } from 'node:crypto'
import { readItem } from '../../harness/wire.ts'
import type { Instance } from '../server-instances.ts'
import { bytesOf, newPiece, type Version, versionOf } from './contents.ts'
import type { KeyRecord, ObjectLedger } from './object-ledger.ts'
import { Register, type Write } from './register.ts'
import { type Answer, type Door, elementsOf, escaped, textOf } from './requests.ts'

/** Sends one request or a few, and returns the status of the last response. */
export type ObjectClient = (instance: Instance) => Promise<number>

/** Where requests for single objects go. */
export interface ObjectScene {
  readonly door: Door
  readonly record: ObjectLedger
  /** Of the bucket, for requests without the S3 protocol. */
  readonly token: string
  readonly authorization: string
}

/** Small ones are stored with their rows, and others as files. */
const newContent = (record: ObjectLedger) => [
  newPiece(record.random(2) ? record.random(3_000) : 70_000 + record.random(60_000)),
]

export const metadataOf = (name: string): Readonly<Record<string, string>> => ({
  'x-amz-meta-version': name,
  'content-type': 'application/octet-stream',
})

/** Records the outcome of a request that writes. A 500 may follow the commit. */
function settleWrite(
  write: Pick<Write<unknown>, 'settle'>,
  { status, code }: Pick<Answer, 'status' | 'code'>,
): void {
  write.settle(code === null ? 'acknowledged' : status === 500 || status === 200 ? 'unknown' : 'refused')
}

/** A new object or one in place of another, without a condition or under one. */
async function put(scene: ObjectScene, instance: Instance, key: KeyRecord, condition: PutCondition = {}) {
  const { door, record } = scene
  const content = newContent(record)
  const version = record.know(key, versionOf(record.newName(), content))
  const write = key.register.begin(version)
  const answer = await door.send(instance, 'PUT', key.key, {
    headers: { ...metadataOf(version.name), ...condition },
    body: bytesOf(content),
  })
  settleWrite(write, answer)
  if (answer.code === null) {
    record.acknowledged()
    if (answer.etag !== version.etag)
      record.fault('halfVisible', `${key.key} was stored with the tag ${answer.etag}`)
  }
  checkCondition(record, key, write, condition, answer)
  return answer
}

export type PutCondition = { readonly 'if-none-match'?: '*'; readonly 'if-match'?: string }

/** Whether the outcome of a request under a condition is possible. */
function checkCondition(
  record: ObjectLedger,
  key: KeyRecord,
  write: Write<Version>,
  condition: PutCondition,
  answer: Answer,
): void {
  const { register, created, replacedOnce } = key
  const wanted = condition['if-match']
  const before = register.possible(answer).filter((value) => value !== write.value)
  const isRefused = answer.code === 'PreconditionFailed' || answer.code === 'NoSuchKey'
  if (condition['if-none-match'] !== undefined) {
    if (isRefused && before.every((value) => value === null))
      record.fault('halfVisible', `a put of ${key.key} if it is absent was refused, and it was`)
    if (answer.code !== null) return
    if (!before.includes(null)) record.fault('lost', `${key.key} was created twice`)
    for (const earlier of created)
      if (!register.mayHaveBeenNull(earlier, write))
        record.fault('lost', `two puts of ${key.key} if it is absent succeeded`)
    created.push(write)
  }
  if (wanted !== undefined) {
    if (isRefused && before.every((value) => value?.etag === wanted))
      record.fault('halfVisible', `a put of ${key.key} if it has its tag was refused`)
    if (answer.code !== null) return
    if (before.every((value) => value?.etag !== wanted))
      record.fault('lost', `${key.key} was replaced, and had another tag than the condition`)
    if (replacedOnce.has(wanted)) record.fault('lost', `${key.key} was replaced twice under one tag`)
    replacedOnce.add(wanted)
  }
}

const anyVersion = ({ record }: ObjectScene, { register }: KeyRecord): Version | null =>
  record.any(
    register
      .possible({ start: Number.POSITIVE_INFINITY, end: Number.POSITIVE_INFINITY })
      .filter((value) => value !== null),
  ) ?? null

/** Several that store an object if it is absent, at the same time. */
async function race(scene: ObjectScene, instance: Instance): Promise<number> {
  const key = scene.record.anyKey()
  const all = [1, 2, 3].map(() => put(scene, instance, key, { 'if-none-match': '*' }))
  const settled = await Promise.allSettled(all)
  const failed = settled.find((one) => one.status === 'rejected')
  if (failed) throw failed.reason
  return (await Promise.race(all)).status
}

async function replaceIfEqual(scene: ObjectScene, instance: Instance): Promise<number> {
  const key = scene.record.anyKey()
  const version = anyVersion(scene, key)
  if (version === null) return (await put(scene, instance, key)).status
  return (await put(scene, instance, key, { 'if-match': version.etag })).status
}

async function remove({ door, record }: ObjectScene, instance: Instance): Promise<number> {
  const { key, register } = record.anyKey()
  const write = register.begin(null)
  const answer = await door.send(instance, 'DELETE', key)
  settleWrite(write, answer)
  return answer.status
}

async function removeSeveral({ door, record }: ObjectScene, instance: Instance): Promise<number> {
  const keys = [...new Set([1, 2, 3].map(() => record.anyKey()))]
  const writes = keys.map(({ register }) => register.begin(null))
  const objects = keys.map(({ key }) => `<Object><Key>${escaped(key)}</Key></Object>`).join('')
  const answer = await door.send(instance, 'POST', null, {
    query: { delete: '' },
    body: `<Delete>${objects}</Delete>`,
  })
  for (const write of writes) settleWrite(write, answer)
  if (answer.code === null && elementsOf(answer.text, 'Deleted').length !== keys.length)
    record.fault('halfVisible', `${keys.length} objects were deleted: ${answer.text}`)
  return answer.status
}

/** Copies an object to another key or to its own with other metadata. */
async function copy(scene: ObjectScene, instance: Instance): Promise<number> {
  const { door, record } = scene
  const [source, target] = [record.anyKey(), record.anyKey()]
  const version = anyVersion(scene, source)
  if (version === null) return (await put(scene, instance, source)).status
  const isSame = source === target
  // An object that was uploaded in parts gets another tag.
  const copied = isSame
    ? versionOf(record.newName(), version.pieces, version.etag)
    : versionOf(record.newName(), version.pieces)
  // All tags of a key differ, so that a condition means one item.
  if (!isSame && target.etags.has(copied.etag)) return (await put(scene, instance, target)).status
  record.know(target, copied)
  const write = target.register.begin(copied)
  const answer = await door.send(instance, 'PUT', target.key, {
    headers: {
      ...metadataOf(copied.name),
      'x-amz-copy-source': `/${door.bucket}/${source.key.split('/').map(encodeURIComponent).join('/')}`,
      'x-amz-copy-source-if-match': version.etag,
      'x-amz-metadata-directive': 'REPLACE',
    },
  })
  settleWrite(write, answer)
  if (answer.code === null) {
    record.acknowledged()
    if (answer.etag !== copied.etag)
      record.fault('halfVisible', `a copy of ${source.key} has the tag ${answer.etag}, not ${copied.etag}`)
  }
  return answer.status
}

/** Reads an object while others change it. */
async function read({ door, record }: ObjectScene, instance: Instance): Promise<number> {
  const key = record.anyKey()
  const answer = await door.send(instance, 'GET', key.key)
  if (answer.status < 500) compareObject(record, key, answer)
  return answer.status
}

/** Compares the response to a GET with what the key may name. */
export function compareObject(record: ObjectLedger, key: KeyRecord, answer: Answer): Version | null {
  const found = answer.status === 404 ? null : foundVersion(record, key.key, answer)
  if (found !== undefined) record.compare(key.key, key.register, answer, found)
  return found ?? null
}

function foundVersion(record: ObjectLedger, key: string, answer: Answer): Version | undefined {
  const version = record.version(answer.headers.get('x-amz-meta-version') ?? '', answer.etag)
  if (answer.status !== 200)
    record.fault(
      'lost',
      `${key} has status ${answer.status}: ${answer.code} ${textOf(answer.text, 'Message')}`,
    )
  else if (version === null)
    record.fault('halfVisible', `${key} has the tag ${answer.etag} of an object that was never sent`)
  else if (!answer.bytes.equals(bytesOf(version.pieces)))
    record.fault('halfVisible', `${key} has other bytes than were sent`)
  else if (answer.headers.get('content-type') !== 'application/octet-stream')
    record.fault('halfVisible', `${key} has the type ${answer.headers.get('content-type')}`)
  else return version
  return undefined
}

/** A page of a list while others change the bucket: in order, and nothing twice. */
async function list({ door, record }: ObjectScene, instance: Instance): Promise<number> {
  const after = record.random(2) ? {} : { 'start-after': record.anyKey().key }
  const query = { 'list-type': 2, 'max-keys': 1 + record.random(30), ...after }
  const answer = await door.send(instance, 'GET', null, { query })
  if (answer.status === 200) checkOrder(record, keysOf(answer))
  return answer.status
}

export const keysOf = ({ text }: Answer): string[] =>
  elementsOf(text, 'Contents').map((content) => textOf(content, 'Key'))

export function checkOrder(record: ObjectLedger, keys: readonly string[]): void {
  for (const [index, key] of keys.entries()) {
    const earlier = keys[index - 1]
    if (earlier !== undefined && Buffer.compare(Buffer.from(earlier), Buffer.from(key)) >= 0)
      record.fault('halfVisible', `a list has ${key} after ${earlier}`)
  }
}

/** An upload without a key. */
async function uploadUnkeyed({ record, authorization }: ObjectScene, { server }: Instance): Promise<number> {
  const content = newContent(record)
  const name = `unkeyed-${randomUUID()}`
  const version = record.know(null, versionOf(name, content))
  const register = new Register<Version>()
  record.unkeyed.set(name, register)
  const write = register.begin(version)
  const headers = { authorization, 'content-disposition': `attachment; filename="${name}"` }
  const response = await server.request('/api/media', { method: 'POST', body: bytesOf(content), headers })
  await response.arrayBuffer()
  const { status } = response
  settleWrite(write, { status, code: status === 201 ? null : `${status}` })
  if (status === 201) record.acknowledged()
  return status
}

/** Deletes the item of a key without the S3 protocol. */
async function removeItem({ door, record, authorization }: ObjectScene, instance: Instance): Promise<number> {
  const key = record.anyKey()
  const head = await door.send(instance, 'HEAD', key.key)
  const id = itemIdOf(head)
  if (head.status !== 200 || id === null) return head.status
  const write = key.register.begin(null, ({ etag }) => etag === head.etag)
  const init = { method: 'DELETE', headers: { authorization } }
  const { status } = await instance.server.request(`/api/media/${id}`, init)
  settleWrite(write, { status, code: status === 204 ? null : `${status}` })
  return status
}

export const itemIdOf = ({ headers }: Pick<Answer, 'headers'>): string | null =>
  /\/media\/(\w+)/.exec(headers.get('x-amz-meta-mediabucket-url') ?? '')?.[1] ?? null

/** Deletes an item without a key by the key that is derived from it. */
async function removeUnkeyed(scene: ObjectScene, instance: Instance): Promise<number> {
  const { door, record } = scene
  const query = { 'list-type': 2, prefix: '_items/', 'max-keys': 20 }
  const answer = await door.send(instance, 'GET', null, { query })
  const key = answer.status === 200 ? record.any(keysOf(answer)) : undefined
  if (key === undefined) return uploadUnkeyed(scene, instance)
  const item = await itemOf(scene, instance, idOfKey(key))
  const register = record.unkeyed.get(item?.filename ?? '')
  if (register === undefined) return answer.status
  const write = register.begin(null)
  const removed = await door.send(instance, 'DELETE', key)
  settleWrite(write, removed)
  return removed.status
}

/** The id of an item without a key, from the key that is derived from it. */
export const idOfKey = (key: string): string => /^_items\/\d{12}-(\w+)/.exec(key)?.[1] ?? ''

/** An item as the bucket has it; null if it has none with this id. */
export async function itemOf({ authorization }: ObjectScene, { server }: Instance, id: string) {
  const response = await server.request(`/api/media/${id}`, { headers: { authorization } })
  if (response.status === 200) return readItem(response)
  await response.arrayBuffer()
  return null
}

/** All clients of single objects. */
export const objectClients = (scene: ObjectScene) => ({
  put: async (instance: Instance) => (await put(scene, instance, scene.record.anyKey())).status,
  create: async (instance: Instance) =>
    (await put(scene, instance, scene.record.anyKey(), { 'if-none-match': '*' })).status,
  race: (instance: Instance) => race(scene, instance),
  replaceIfEqual: (instance: Instance) => replaceIfEqual(scene, instance),
  remove: (instance: Instance) => remove(scene, instance),
  removeSeveral: (instance: Instance) => removeSeveral(scene, instance),
  copy: (instance: Instance) => copy(scene, instance),
  read: (instance: Instance) => read(scene, instance),
  list: (instance: Instance) => list(scene, instance),
  uploadUnkeyed: (instance: Instance) => uploadUnkeyed(scene, instance),
  removeItem: (instance: Instance) => removeItem(scene, instance),
  removeUnkeyed: (instance: Instance) => removeUnkeyed(scene, instance),
})
