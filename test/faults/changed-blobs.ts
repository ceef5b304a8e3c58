import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { newMediaId } from '../../packages/server/src/core/media-id.ts'
import { temporaryDirectory } from '../harness/directory.ts'
import { until } from '../harness/until.ts'
import { fsck, listAll } from '../harness/upkeep.ts'
import { blobPath } from '../harness/upload.ts'
import type { Life } from './lives.ts'
import { withFailpoints } from './preload.ts'
import { faultOnStage, must } from './stage.ts'
import { readReached } from './steps.ts'

const itemsOf = async ({ server, authorization }: Life): Promise<string[]> =>
  (await listAll(server, authorization)).map((url) => /\/media\/(\w+)/.exec(url)?.[1] ?? '')

/** The code of the problem, and whether it may be kept. */
async function bytesOf({ server }: Life, id: string) {
  const answer = await fetch(`${server.url}/media/${id}`)
  const text = await answer.text()
  return {
    status: answer.status,
    isProblem: text.includes('"code":"bytes-missing"'),
    kept: answer.headers.get('cache-control'),
  }
}

export const flippedByte = faultOnStage(
  'one flipped byte in a blob',
  async ({ clients, directory, ledger, life }) => {
    for (const way of [clients.raw, clients.form]) must('there are items', (await way(life())) === 201)
    const listed = await itemsOf(life())
    const sizes = await Promise.all(
      listed.map(async (id) => (await readFile(blobPath(life().server, id))).length),
    )
    const id = listed[sizes.findIndex((size) => size > 0)] ?? ''
    const path = blobPath(life().server, id)
    const bytes = await readFile(path)
    const flipped = Buffer.from(bytes)
    const at = ledger.random(bytes.length)
    flipped[at] = (flipped[at] ?? 0) ^ (1 << ledger.random(8))
    await writeFile(path, flipped)

    const { code, found, report } = await fsck(directory, '--verify-bytes')
    must('fsck finds it', code === 1 && isDeepStrictEqual(found, { 'hash-wrong': [1, 0] }))
    must('fsck tells which', report.findings[0]?.subjects.join() === id)
    const { status, isProblem, kept } = await bytesOf(life(), id)
    must(
      'the item answers a 500 problem that nobody keeps',
      status === 500 && isProblem && kept === 'no-store',
    )
    must('its row stays', isDeepStrictEqual(await itemsOf(life()), listed))
    await writeFile(path, bytes)
    must('fsck finds the bytes right again', (await fsck(directory, '--verify-bytes')).code === 0)
  },
)

/** Bytes that nothing names, an item without bytes, and an upload whose bytes are in place just before its row is. */
export const plantedBlobs = faultOnStage(
  'planted and removed blobs, and a repair between rename and commit',
  async ({ clients, directory, restart }) => {
    await using place = await temporaryDirectory()
    const holdUntil = join(place.path, 'go-on')
    const life = await restart(withFailpoints({ step: 'directory synced', nth: 3, action: { holdUntil } }))
    for (const way of [clients.raw, clients.raw]) must('there are items', (await way(life)) === 201)
    const planted = blobPath(life.server, newMediaId())
    await mkdir(dirname(planted), { recursive: true })
    await writeFile(planted, 'planted')
    const removed = blobPath(life.server, (await itemsOf(life))[0] ?? '')
    await rename(removed, join(place.path, 'removed'))
    const { found } = await fsck(directory)
    must('both are told', isDeepStrictEqual(found, { 'bytes-missing': [1, 0], 'bytes-orphaned': [1, 0] }))

    const held = clients.raw(life)
    await until('the bytes of an upload are in place', () => readReached(directory).length > 0)
    const repair = await fsck(directory, '--repair')
    must(
      'a repair moves what nothing names',
      isDeepStrictEqual(repair.found, { 'bytes-missing': [1, 0], 'bytes-orphaned': [2, 2] }),
    )
    await rename(join(place.path, 'removed'), removed)
    await writeFile(holdUntil, '')
    const status = await held
    must(`an upload whose bytes were moved is no 201 but a 5xx, not ${status}`, status >= 500)
    must('all is well then', isDeepStrictEqual((await fsck(directory, '--verify-bytes')).found, {}))
    must('uploads go on', (await clients.raw(life)) === 201)
  },
)
