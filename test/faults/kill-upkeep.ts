import { existsSync } from 'node:fs'
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { temporaryDirectory } from '../harness/directory.ts'
import { runCommand, startServer } from '../harness/server.ts'
import { tusOf } from '../harness/tus.ts'
import { fsck, outcome } from '../harness/upkeep.ts'
import { createClients } from './clients.ts'
import { type Fault, verdictOf } from './fault.ts'
import { createLedger } from './ledger.ts'
import { openInstances } from './server-instances.ts'
import { must } from './stage.ts'

const preload = `--import ${new URL('kill-at-call.ts', import.meta.url).href}`

/** Runs a command that is killed before its n-th call that changes files. */
const runInto = (args: readonly string[], data: string, nth: number): Promise<unknown> =>
  runCommand(args, { MEDIABUCKET_DATA: data, NODE_OPTIONS: preload, KILL_AT: `${nth}` }).catch(
    (failure: { signal?: string; stderr?: string }) =>
      must(`a command dies by its kill alone: ${failure.stderr}`, failure.signal === 'SIGKILL'),
  )

/** The numbers of the calls that change files, from 1. Calls that do not concern the bytes of one item come first. */
async function callsOf(args: readonly string[], data: string, list: string): Promise<number[]> {
  await runCommand(args, { MEDIABUCKET_DATA: data, NODE_OPTIONS: preload, CALLS: list })
  const calls = (await readFile(list, 'utf8')).trimEnd().split('\n')
  const numbered = calls.map((call, index) => ({
    nth: index + 1,
    isOne: /^(write|run) |\/(tmp|blobs\/..)\b/.test(call),
  }))
  return [
    ...numbered.filter(({ isOne }) => !isOne).toReversed(),
    ...numbered.filter(({ isOne }) => isOne),
  ].map(({ nth }) => nth)
}

const items = 6

/**
 * A backup and a restore are killed at one call after another and run again, which completes them: all stored items
 * are there, and fsck finds nothing.
 */
export const killUpkeep: Fault = {
  title: 'kill -9 of backup and restore at each call that changes files, then the same command again',
  async run(rounds, onRound) {
    const ledger = createLedger()
    const clients = createClients(ledger)
    await using instances = await openInstances()
    await using directory = await temporaryDirectory()
    const at = (...names: string[]) => join(directory.path, ...names)
    const instance = await instances.start()
    for (let item = 0; item < items; item += 1) await clients.raw(instance)
    await clients.form(instance)
    await instance.server.stop()
    const steps = {
      backup: await callsOf(['backup', at('good')], instances.directory, at('backup-calls')),
      restore: await callsOf(['restore', at('good')], at('trial'), at('restore-calls')),
    }

    async function round(nth: number): Promise<void> {
      const which = nth % 2 === 0 ? 'restore' : 'backup'
      const step = steps[which][Math.floor(nth / 2) % steps[which].length] ?? 1
      const [backup, data] = [at(`backup-${nth}`), at(`data-${nth}`)]
      if (which === 'backup') {
        await runInto(['backup', backup], instances.directory, step)
        const again = await outcome(['backup', backup], instances.directory)
        must(`the backup is completed after call ${step}: ${again.stderr}`, again.code === 0)
      }
      const from = which === 'backup' ? backup : at('good')
      if (which === 'restore') await runInto(['restore', from], data, step)
      const again = await outcome(['restore', from], data)
      // It is already complete if it was killed after its last step or made fewer calls than the counted run.
      const isComplete =
        which === 'restore' &&
        existsSync(join(data, 'catalog.db')) &&
        again.stderr.includes('holds data already')
      must(`the restore is completed after call ${step}: ${again.stderr}`, again.code === 0 || isComplete)
      const { code, found } = await fsck(data, '--verify-bytes')
      must(`fsck finds nothing after call ${step}`, code === 0 && Object.keys(found).length === 0)
      await using server = await startServer({}, data)
      const { token, authorization } = instance
      await ledger.check({ server, token, authorization, tus: tusOf({ url: server.url, token }) })
      await server.stop()
      for (const path of [backup, data]) await rm(path, { recursive: true, force: true })
    }

    for (let nth = 0; nth < rounds; nth += 1) {
      await round(nth)
      ledger.tally.rounds += 1
      onRound()
    }
    return verdictOf(ledger)
  },
}
