import { existsSync } from 'node:fs'
import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { temporaryDirectory } from '../harness/directory.ts'
import { runCommand, startServer } from '../harness/server.ts'
import { fsck, outcome } from '../harness/upkeep.ts'
import { createClients } from './clients.ts'
import { type Fault, verdictOf } from './fault.ts'
import { createLedger } from './ledger.ts'
import { instanceOf, openInstances } from './server-instances.ts'
import { must } from './stage.ts'

const preload = `--import ${new URL('kill-at-call.ts', import.meta.url).href}`

/** Runs a command and kills it before its call number `call` that changes files. Throws if it fails in another way. */
export const runAndKillAt = (
  args: readonly string[],
  data: string,
  call: number,
  settings: Readonly<Record<string, string>> = {},
): Promise<unknown> =>
  runCommand(args, { ...settings, MEDIABUCKET_DATA: data, NODE_OPTIONS: preload, KILL_AT: `${call}` }).catch(
    (failure: { signal?: string; stderr?: string }) =>
      must(`the command fails only by the kill: ${failure.stderr}`, failure.signal === 'SIGKILL'),
  )

/**
 * Runs a command to its end, and returns the numbers (from 1) of its calls that change files. Calls that occur once for each
 * item come last, because they are similar: a few rounds then kill the command at all other calls. `log` is a file for
 * the calls.
 */
async function numberCalls(args: readonly string[], data: string, log: string): Promise<number[]> {
  await runCommand(args, { MEDIABUCKET_DATA: data, NODE_OPTIONS: preload, CALLS: log })
  const calls = (await readFile(log, 'utf8')).trimEnd().split('\n')
  const numbered = calls.map((call, index) => ({
    number: index + 1,
    isPerItem: /^(write|run) |\/(tmp|blobs\/..)\b/.test(call),
  }))
  return [
    ...numbered.filter(({ isPerItem }) => !isPerItem).toReversed(),
    ...numbered.filter(({ isPerItem }) => isPerItem),
  ].map(({ number }) => number)
}

/** The service may start on an empty directory, and on one with all rows. */
async function mustRefuseToServe(data: string, call: number): Promise<void> {
  const names = existsSync(data) ? await readdir(data) : []
  if (names.length === 0 || names.includes('catalog.db')) return
  const refusal = await startServer({}, data).then(
    async (server) => {
      await server.stop()
      return 'the service started'
    },
    (error: unknown) => String(error),
  )
  must(
    `no service starts after call ${call}, on ${names}: ${refusal}`,
    /exited with 1: .*A restore into .* was interrupted/.test(refusal),
  )
}

const items = 6

/**
 * Each round kills a backup or a restore at another call and runs the same command again. No service starts in between. The second run must complete it:
 * the restored data contain all stored items, and fsck finds nothing.
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
    const completeBackup = at('complete-backup')
    const calls = {
      backup: await numberCalls(['backup', completeBackup], instances.directory, at('backup-calls')),
      restore: await numberCalls(['restore', completeBackup], at('first-restore'), at('restore-calls')),
    }

    async function runRound(round: number): Promise<void> {
      const killed = round % 2 === 0 ? 'restore' : 'backup'
      const call = calls[killed][Math.floor(round / 2) % calls[killed].length] ?? 1
      const [backup, data] = [at(`backup-${round}`), at(`data-${round}`)]
      if (killed === 'backup') {
        await runAndKillAt(['backup', backup], instances.directory, call)
        const repeated = await outcome(['backup', backup], instances.directory)
        must(`the backup is completed after call ${call}: ${repeated.stderr}`, repeated.code === 0)
      }
      const from = killed === 'backup' ? backup : completeBackup
      if (killed === 'restore') {
        await runAndKillAt(['restore', from], data, call)
        await mustRefuseToServe(data, call)
      }
      const restored = await outcome(['restore', from], data)
      // The killed restore was already complete if the kill came after its last change, or if it made fewer calls than the
      // run that was counted.
      const wasComplete =
        killed === 'restore' &&
        existsSync(join(data, 'catalog.db')) &&
        restored.stderr.includes('holds data already')
      must(
        `the restore is completed after call ${call}: ${restored.stderr}`,
        restored.code === 0 || wasComplete,
      )
      const { code, found } = await fsck(data, '--verify-bytes')
      must(`fsck finds nothing after call ${call}`, code === 0 && Object.keys(found).length === 0)
      await using server = await startServer({}, data)
      await ledger.check(instanceOf(server, instance.token))
      await server.stop()
      for (const path of [backup, data]) await rm(path, { recursive: true, force: true })
    }

    for (let round = 0; round < rounds; round += 1) {
      await runRound(round)
      ledger.tally.rounds += 1
      onRound()
    }
    return verdictOf(ledger)
  },
}
