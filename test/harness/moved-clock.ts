import { globSync } from 'node:fs'
import { unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { errorCode } from '../../packages/server/src/core/faults.ts'
import { temporaryDirectory } from './directory.ts'
import { isRunning } from './processes.ts'

/** The clock of a service, which a test moves while the service runs. Disposing it removes the files of libfaketime. */
export interface MovedClock extends AsyncDisposable {
  /** The environment of the service. */
  readonly settings: Readonly<Record<string, string>>
  /** Sets the difference to the clock of the machine, such as `+1d`. The service sees it within two seconds. */
  readonly move: (to: string) => Promise<void>
}

/** Debian's libfaketime; null where it is not installed. */
export const fakeTime = (): string | null => globSync('/usr/lib/*/faketime/libfaketimeMT.so.1')[0] ?? null

export async function movedClock(): Promise<MovedClock> {
  const place = await temporaryDirectory()
  const clock = join(place.path, 'clock')
  const move = (to: string) => writeFile(clock, `${to}\n`)
  await move('+0')
  const before = new Set(sharedMemory())
  return {
    settings: {
      LD_PRELOAD: fakeTime() ?? '',
      FAKETIME_TIMESTAMP_FILE: clock,
      // Seconds between two reads of the file.
      FAKETIME_CACHE_DURATION: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    },
    move,
    async [Symbol.asyncDispose]() {
      await removeSharedMemory(before)
      await place[Symbol.asyncDispose]()
    },
  }
}

/** The paths of libfaketime's files. Their names end with the id of a process, which does not remove them if it is killed. */
const sharedMemory = (): string[] => globSync('/dev/shm/{sem.faketime_sem,faketime_shm}_*')

/** Removes libfaketime's files of ended processes, except those in `before`. */
async function removeSharedMemory(before: ReadonlySet<string>): Promise<void> {
  for (const path of sharedMemory()) {
    if (before.has(path) || isRunning(Number(path.split('_').at(-1)))) continue
    await unlink(path).catch((error: unknown) => {
      // EPERM: it is of another user. ENOENT: another run has removed it.
      if (!['EPERM', 'ENOENT'].includes(errorCode(error) ?? '')) throw error
    })
  }
}
