import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { errorCode } from '../../core/error-code.ts'

/** How to start a picture worker, with the restrictions that this system supports. */
export interface PictureSandbox {
  readonly execPath: string
  readonly execArgv: readonly string[]
  readonly env: Readonly<Record<string, string>>
  /** Restrictions that the kernel enforces, also for native code. */
  readonly enforced: { readonly noWrite: boolean; readonly noNetwork: boolean }
}

/**
 * The limits of Node.js: no write, no other process, no thread; on Node.js 26 no network either. They hold only for JavaScript,
 * and the decoder is native code.
 */
const nodeLimits = [
  '--permission',
  '--allow-addons',
  '--allow-fs-read=*',
  '--disable-warning=PERM0001',
  '--no-warnings',
]

/** Files of 0 bytes at most, no core dump, no new privileges. */
const noWrite = [
  '/usr/bin/prlimit',
  '--fsize=0',
  '--core=0',
  '--',
  '/usr/bin/setpriv',
  '--no-new-privs',
  '--',
]

/** A network namespace without devices. */
const noNetwork = ['/usr/bin/unshare', '--user', '--net', '--']

/**
 * The strictest sandbox that this system allows, tested with /bin/true. Throws if no process can be started now: otherwise
 * a weaker sandbox would stay in use.
 */
export function findPictureSandbox(): PictureSandbox {
  const tried = process.platform === 'linux' ? [[...noNetwork, ...noWrite], noWrite, noNetwork] : []
  const prefix = tried.find(works) ?? []
  const [execPath = process.execPath, ...args] = [...prefix, process.execPath]
  return {
    execPath,
    execArgv: [...args, ...nodeLimits],
    env: {},
    enforced: { noWrite: prefix.includes('--fsize=0'), noNetwork: prefix.includes('--net') },
  }
}

/** Errors that do not depend on the sandbox. */
const transientErrors: ReadonlySet<string> = new Set(['EMFILE', 'ENFILE', 'EAGAIN', 'ENOMEM', 'ETIMEDOUT'])

function works(prefix: readonly string[]): boolean {
  const [program = '', ...args] = [...prefix, '/bin/true']
  if (!prefix.filter((word) => word.startsWith('/')).every((path) => existsSync(path))) return false
  const { status, error } = spawnSync(program, args, { env: {}, stdio: 'ignore', timeout: 5_000 })
  if (transientErrors.has(errorCode(error) ?? '')) throw error
  return status === 0
}
