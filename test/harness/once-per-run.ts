import { existsSync } from 'node:fs'
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { errorCode } from '../../packages/server/src/core/faults.ts'
import { until } from './until.ts'

/**
 * Runs `start` in the first worker that calls it, and returns its result, which must be JSON, to all workers. The directory belongs to
 * this run of the tests.
 */
export async function oncePerRun(directory: string, start: () => Promise<string>): Promise<string> {
  const [ready, failed] = [join(directory, 'ready'), join(directory, 'failed')]
  try {
    await mkdir(join(directory, 'starting'))
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error
    await until('the first worker', () => existsSync(ready) || existsSync(failed), 120_000)
    if (existsSync(failed)) throw new Error(await readFile(failed, 'utf8'))
    return readFile(ready, 'utf8')
  }
  try {
    const result = await start()
    await writeFile(`${ready}.new`, result)
    await rename(`${ready}.new`, ready)
    return result
  } catch (error) {
    await writeFile(failed, error instanceof Error ? error.message : String(error))
    throw error
  }
}
