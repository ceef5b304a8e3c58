import { createClient } from '../../../packages/client/src/index.ts'
import type { Instance } from '../server-instances.ts'
import { bytesOf, sha256Of, type Version } from './contents.ts'
import {
  checkOrder,
  compareObject,
  idOfKey,
  itemIdOf,
  itemOf,
  keysOf,
  type ObjectScene,
} from './object-clients.ts'
import type { KeyRecord } from './object-ledger.ts'
import { type Answer, elementsOf, textOf } from './requests.ts'

/** An object as a list has it. */
interface Listed {
  readonly key: string
  readonly etag: string
  readonly size: number
}

/** Objects that other programs store below a prefix. */
export interface OtherObjects {
  readonly prefix: string
  /** Checks the bytes of one of them. */
  check(key: string, answer: Answer): void
}

/** All objects of an idle bucket, in pages of any length, by either version of the list. */
async function listObjects({ door, record }: ObjectScene, instance: Instance): Promise<Listed[]> {
  const found: Listed[] = []
  const isV2 = record.random(2) === 0
  const limit = 1 + record.random(40)
  for (let after: string | null = null; ; ) {
    const place: Record<string, string> =
      after === null ? {} : { [isV2 ? 'continuation-token' : 'marker']: after }
    const answer: Answer = await door.send(instance, 'GET', null, {
      query: { 'max-keys': limit, ...(isV2 && { 'list-type': 2 }), ...place },
    })
    if (answer.code !== null) throw new Error(`a list gets ${answer.code}`)
    for (const content of elementsOf(answer.text, 'Contents'))
      found.push({
        key: textOf(content, 'Key'),
        etag: textOf(content, 'ETag').replaceAll('"', ''),
        size: Number(textOf(content, 'Size')),
      })
    if (textOf(answer.text, 'IsTruncated') !== 'true') break
    after = isV2 ? textOf(answer.text, 'NextContinuationToken') : (keysOf(answer).at(-1) ?? null)
  }
  checkOrder(
    record,
    found.map(({ key }) => key),
  )
  return found
}

/** Compares an idle service with the record, and settles what was unknown. Nothing is in two places. */
export async function checkObjects(
  scene: ObjectScene,
  instance: Instance,
  others: OtherObjects | null,
): Promise<void> {
  const { record } = scene
  record.settle()
  const objects = await listObjects(scene, instance)
  const listed = new Map(objects.map((object) => [object.key, object]))
  const owners = new Map<string, string>()
  /** An item has one key. */
  const own = (id: string | null, key: string) => {
    const other = owners.get(id ?? '')
    if (id === null || other !== undefined)
      record.fault('halfVisible', `${key} names ${id}, as ${other} does`)
    else owners.set(id, key)
  }
  await Promise.all([...record.keys.values()].map((key) => checkKey(scene, instance, key, listed, own)))
  const seen = new Set<string>()
  await Promise.all(
    objects.map(async ({ key, etag }) => {
      if (record.keys.has(key)) return
      if (key.startsWith('_items/')) {
        own(idOfKey(key), key)
        const name = await checkUnkeyed(scene, instance, key, etag)
        if (name !== null) seen.add(name)
      } else if (others !== null && key.startsWith(others.prefix)) {
        const answer = await scene.door.send(instance, 'GET', key)
        own(itemIdOf(await scene.door.send(instance, 'HEAD', key)), key)
        others.check(key, answer)
      } else record.fault('halfVisible', `${key} is listed, and was never sent`)
    }),
  )
  for (const [name, register] of record.unkeyed) {
    if (seen.has(name)) continue
    record.compare(name, register, idle, null)
    record.unkeyed.delete(name)
  }
  await checkBucket(scene, instance, objects, owners)
}

/** The hashes of all objects below a prefix. */
export async function hashesBelow(
  scene: ObjectScene,
  instance: Instance,
  prefix: string,
): Promise<ReadonlyMap<string, string>> {
  const keys = (await listObjects(scene, instance))
    .map(({ key }) => key)
    .filter((key) => key.startsWith(prefix))
  const answers = await Promise.all(keys.map((key) => scene.door.send(instance, 'GET', key)))
  return new Map(answers.map(({ bytes }, index) => [keys[index] ?? '', sha256Of(bytes)]))
}

const idle = { start: Number.POSITIVE_INFINITY, end: Number.POSITIVE_INFINITY }

/** The bytes, the metadata and the item of a key. */
async function checkKey(
  scene: ObjectScene,
  instance: Instance,
  key: KeyRecord,
  listed: ReadonlyMap<string, Listed>,
  own: (id: string | null, key: string) => void,
): Promise<void> {
  const { door, record } = scene
  const version = compareObject(record, key, await door.send(instance, 'GET', key.key))
  key.register.observed(version)
  const entry = listed.get(key.key)
  if (entry?.etag !== version?.etag || entry?.size !== version?.size)
    record.fault('lost', `${key.key} has the tag ${version?.etag} and is listed with ${entry?.etag}`)
  if (version === null) return
  const id = itemIdOf(await door.send(instance, 'HEAD', key.key))
  own(id, key.key)
  const item = await itemOf(scene, instance, id ?? '')
  if (item?.sha256 !== version.sha256 || item.size !== version.size)
    record.fault(
      'halfVisible',
      `${key.key} names the item ${id} of ${item?.size} bytes, and has ${version.size}`,
    )
  await checkMedia(scene, instance, item?.url, version)
}

async function checkMedia(
  { record }: ObjectScene,
  { server }: Instance,
  url: string | undefined,
  { pieces, name }: Version,
): Promise<void> {
  const response = await fetch(new URL(new URL(url ?? 'http://x/').pathname, server.url))
  const bytes = Buffer.from(await response.arrayBuffer())
  if (response.status !== 200 || !bytes.equals(bytesOf(pieces)))
    record.fault('lost', `the media URL of ${name} has status ${response.status} or other bytes`)
}

/** Returns the name of an item without a key. */
async function checkUnkeyed(
  scene: ObjectScene,
  instance: Instance,
  key: string,
  etag: string,
): Promise<string | null> {
  const { door, record } = scene
  const item = await itemOf(scene, instance, idOfKey(key))
  const name = item?.filename ?? ''
  const register = record.unkeyed.get(name)
  const [version = null] = register?.possible(idle).filter((value) => value !== null) ?? []
  if (register === undefined || version === null) {
    record.fault(register ? 'returned' : 'halfVisible', `${key} with the name ${name} is listed`)
    return null
  }
  register.observed(version)
  const { bytes, status } = await door.send(instance, 'GET', key)
  if (status !== 200 || !bytes.equals(bytesOf(version.pieces)))
    record.fault('lost', `${key} has status ${status} or other bytes`)
  if (etag !== `${version.sha256.slice(0, 32)}-1`) record.fault('halfVisible', `${key} has the tag ${etag}`)
  return name
}

/** The list of items has what the list of keys has, and the figures of the bucket are those of the lists. */
async function checkBucket(
  { record, token }: ObjectScene,
  { server }: Instance,
  objects: readonly Listed[],
  owners: ReadonlyMap<string, string>,
): Promise<void> {
  const client = createClient({ url: server.url, token })
  let items = 0
  for await (const { id } of client.items({ batchSize: 500 })) {
    items += 1
    if (!owners.has(id)) record.fault('halfVisible', `the item ${id} is in no list of keys`)
  }
  if (items !== owners.size) record.fault('lost', `${items} items have ${owners.size} keys`)
  const bucket = await client.bucket()
  const bytes = objects.reduce((sum, { size }) => sum + size, 0) + (bucket.trash_bytes ?? 0)
  if (bucket.items !== objects.length || bucket.bytes !== bytes)
    record.fault(
      'halfVisible',
      `the bucket has ${bucket.items} items and ${bucket.bytes} bytes; the list has ${objects.length} and ${bytes}`,
    )
}
