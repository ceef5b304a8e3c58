import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { errorCode } from '../../core/error-code.ts'

/** How a process that decodes pictures is started, with what the system can take from it. */
export interface PictureSandbox {
  readonly execPath: string
  readonly execArgv: readonly string[]
  readonly env: Readonly<Record<string, string>>
  /** What the kernel enforces, also for native code. */
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

/** A file of no bytes is the largest that it may write; no core dump; no more rights by any program. */
const noWrite = [
  '/usr/bin/prlimit',
  '--fsize=0',
  '--core=0',
  '--',
  '/usr/bin/setpriv',
  '--no-new-privs',
  '--',
]

/** A network of its own without any device. */
const noNetwork = ['/usr/bin/unshare', '--user', '--net', '--']

/**
 * The strictest sandbox that this system allows, tried with a program that does nothing. Throws where no process can be
 * started at the moment: a weaker sandbox would stay in use after that.
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

/** Errors that say nothing about the sandbox. */
const transientErrors: ReadonlySet<string> = new Set(['EMFILE', 'ENFILE', 'EAGAIN', 'ENOMEM', 'ETIMEDOUT'])

function works(prefix: readonly string[]): boolean {
  const [program = '', ...args] = [...prefix, '/bin/true']
  if (!prefix.filter((word) => word.startsWith('/')).every((path) => existsSync(path))) return false
  const { status, error } = spawnSync(program, args, { env: {}, stdio: 'ignore', timeout: 5_000 })
  if (transientErrors.has(errorCode(error) ?? '')) throw error
  return status === 0
}
