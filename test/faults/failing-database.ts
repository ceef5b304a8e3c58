import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { quarters, variantUrl } from '../harness/pictures.ts'
import { makeToken } from '../harness/token.ts'
import { upload } from '../harness/upload.ts'
import { workersOf } from '../harness/workers.ts'
import { checkScene, openScene, sendEach } from './kill-objects.ts'
import type { ObjectScene } from './objects/object-clients.ts'
import { withFailingStatements } from './preload.ts'
import type { Instance } from './server-instances.ts'
import { faultOnStage, must, type Stage } from './stage.ts'

/** SQLITE_IOERR, SQLITE_CORRUPT, SQLITE_NOMEM and SQLITE_FULL. */
const codes = [10, 11, 7, 13]

/** Calls that are armed in a round, chosen at random; the long form arms a thousand in all. */
const callsPerRound = 10
/** More are armed until this many have failed: those of timers and of the indexing of names may not occur again. */
const minFailed = 3

/** Requests that together use every thread of the service. */
async function useAll(
  { clients }: Stage,
  instance: Instance,
  { picture, scene }: { readonly picture: string; readonly scene: ObjectScene },
): Promise<void> {
  const { server, authorization } = instance
  for (const way of [clients.raw, clients.form, clients.resumable, clients.remove]) await way(instance)
  const get = async (url: string) => {
    const response = await fetch(new URL(url, server.url), { headers: { authorization } })
    await response.arrayBuffer()
  }
  const urls = [
    '/api/media',
    '/api/items?limit=5',
    '/api/items?name=a',
    '/api/items?kind=image',
    '/api/bucket',
  ]
  await Promise.all(
    [...urls, '/api/trash', '/api/token', '/metrics', '/readyz?writes', `/media/${picture}`].map(get),
  )
  await get(variantUrl(server, picture))
  await sendEach(scene, instance)
}

/**
 * Each call of SQLite of each thread fails once, with each code. No process ends, and afterwards everything works. Every second round, with
 * several workers.
 */
export const failingStatements = faultOnStage(
  'an error of each database call of each thread',
  async (stage, nth) => {
    const { directory, clients, ledger } = stage
    const armed = join(directory, 'statement-armed')
    const list = `statements-${nth}`
    const settings = nth % 2 === 0 ? { MEDIABUCKET_WORKERS: '2' } : {}
    const instance = await stage.restart({ ...withFailingStatements(), ...settings })
    const { server } = instance
    const { authorization } = await makeToken(server, '--bucket', 'pictures')
    const picture = await quarters(60, 40).png().toBuffer()
    const { id } = await upload(server, new Uint8Array(picture), { type: 'image/png', authorization })
    const { scene } = await openScene(instance, ledger, `objects-${nth}`)
    const used = { picture: id, scene }
    // Starts all threads: what they call at their start is not called again.
    await useAll(stage, instance, used)
    writeFileSync(join(directory, 'statements-list'), list)
    await useAll(stage, instance, used)
    const calls = [
      ...new Set(
        readFileSync(join(directory, list), 'utf8')
          .split('\n')
          .filter((line) => line !== ''),
      ),
    ]
    const workers = workersOf(server)
    const code = codes[Math.floor(nth / 2) % codes.length] ?? 10
    const first = ledger.random(calls.length)
    let failed = 0
    for (let index = 0; index < calls.length; index += 1) {
      if (index >= callsPerRound && failed >= minFailed) break
      const call = calls[(first + index) % calls.length] ?? ''
      writeFileSync(armed, `${call}\n${code}`)
      await useAll(stage, instance, used)
      must(`the service survives an error of: ${call}`, server.process.exitCode === null)
      must(`no worker ends after an error of: ${call}`, workersOf(server).join() === workers.join())
      if (existsSync(armed)) rmSync(armed)
      else failed += 1
      for (const way of [clients.raw, clients.resumable])
        must(`uploads succeed after an error of: ${call}`, [201, 204].includes(await way(instance)))
    }
    must(`one of ${calls.length} calls has failed`, failed > 0)
    await checkScene(scene, instance, null)
  },
)
