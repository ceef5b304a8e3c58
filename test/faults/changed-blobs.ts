import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { newItemId } from '../../packages/server/src/core/ids.ts'
import { temporaryDirectory } from '../harness/directory.ts'
import { until } from '../harness/until.ts'
import { fsck, listAll } from '../harness/upkeep.ts'
import { blobPath, onDisk } from '../harness/upload.ts'
import { withFailpoints } from './preload.ts'
import type { Instance } from './server-instances.ts'
import { faultOnStage, must } from './stage.ts'
import { readReached } from './steps.ts'

const itemsOf = async ({ server, authorization }: Instance): Promise<string[]> =>
  (await listAll(server, authorization)).map((url) => /\/media\/(\w+)/.exec(url)?.[1] ?? '')

/** The status, whether the problem code is `bytes-missing`, and Cache-Control. */
async function bytesOf({ server }: Instance, id: string) {
  const response = await fetch(`${server.url}/media/${id}`)
  const text = await response.text()
  return {
    status: response.status,
    isProblem: text.includes('"code":"bytes-missing"'),
    cacheControl: response.headers.get('cache-control'),
  }
}

export const flippedByte = faultOnStage(
  'one flipped byte in a blob',
  async ({ clients, directory, ledger, instance, restart }) => {
    await restart(onDisk)
    for (const way of [clients.raw, clients.form]) must('there are items', (await way(instance())) === 201)
    const listed = await itemsOf(instance())
    const sizes = await Promise.all(
      listed.map(async (id) => (await readFile(blobPath(instance().server, id))).length),
    )
    const id = listed[sizes.findIndex((size) => size > 0)] ?? ''
    const path = blobPath(instance().server, id)
    const bytes = await readFile(path)
    const flipped = Buffer.from(bytes)
    const at = ledger.random(bytes.length)
    flipped[at] = (flipped[at] ?? 0) ^ (1 << ledger.random(8))
    await writeFile(path, flipped)

    const { code, found, report } = await fsck(directory, '--verify-bytes')
    must('fsck reports the changed bytes', code === 1 && isDeepStrictEqual(found, { 'hash-wrong': [1, 0] }))
    must('fsck names the item', report.findings[0]?.subjects.join() === id)
    const { status, isProblem, cacheControl } = await bytesOf(instance(), id)
    must(
      'a request for the bytes receives a 500 problem with Cache-Control: no-store',
      status === 500 && isProblem && cacheControl === 'no-store',
    )
    must('the item stays listed', isDeepStrictEqual(await itemsOf(instance()), listed))
    await writeFile(path, bytes)
    must('fsck accepts the restored bytes', (await fsck(directory, '--verify-bytes')).code === 0)
  },
)

/** Orphaned bytes, an item without bytes, and an upload between the rename of its file and its commit. */
export const plantedBlobs = faultOnStage(
  'orphaned and removed blobs, and fsck --repair between rename and commit',
  async ({ clients, directory, restart }) => {
    await using place = await temporaryDirectory()
    const holdUntil = join(place.path, 'continue')
    const failpoint = { step: 'directory synced', nth: 3, action: { holdUntil } } as const
    const instance = await restart({ ...withFailpoints(failpoint), ...onDisk })
    for (const way of [clients.raw, clients.raw]) must('there are items', (await way(instance)) === 201)
    const planted = blobPath(instance.server, newItemId())
    await mkdir(dirname(planted), { recursive: true })
    await writeFile(planted, 'planted')
    const removed = blobPath(instance.server, (await itemsOf(instance))[0] ?? '')
    await rename(removed, join(place.path, 'removed'))
    const { found } = await fsck(directory)
    must('fsck reports both', isDeepStrictEqual(found, { 'bytes-missing': [1, 0], 'bytes-orphaned': [1, 0] }))

    const held = clients.raw(instance)
    await until('the file of an upload is renamed', () => readReached(directory).length > 0)
    const repair = await fsck(directory, '--repair')
    must(
      'a repair moves the orphaned bytes, and leaves those of an upload in progress',
      isDeepStrictEqual(repair.found, { 'bytes-missing': [1, 0], 'bytes-orphaned': [1, 1] }),
    )
    await rename(join(place.path, 'removed'), removed)
    await writeFile(holdUntil, '')
    const status = await held
    must(`an upload beside a repair is stored, not ${status}`, status === 201)
    must(
      'fsck finds nothing afterwards',
      isDeepStrictEqual((await fsck(directory, '--verify-bytes')).found, {}),
    )
    must('an upload is stored afterwards', (await clients.raw(instance)) === 201)
  },
)
