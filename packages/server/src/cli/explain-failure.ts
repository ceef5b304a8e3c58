import { CommandError, UsageError } from '@mediabucket/cli/command'
import { ExplainedError, errorCode } from '../core/faults.ts'
import { ConfigError } from '../service/environment.ts'

/** One message with the reason and what to do; null for an unexpected error, which is printed with its stack. */
export function explainFailure(error: unknown): string | null {
  if (!(error instanceof Error)) return null
  if (error instanceof ExplainedError || error instanceof CommandError || error instanceof UsageError)
    return error.message
  const listening = explainListening(error)
  if (listening !== null) return listening
  // An error of starting a thread has the code in its message only.
  const code = /\b(EMFILE|EAGAIN|ENOMEM)\b/.exec(error.message)?.[1] ?? errorCode(error) ?? ''
  const call = 'syscall' in error ? String(error.syscall) : ''
  const remedy = remediesOfCodes[code] ?? remediesOfCalls[call]
  if (remedy === undefined) return null
  return `${error.message.replace(/\.$/, '')}. ${remedy}`
}

/** A failed start as a line of a log in JSON (docs/interface.md O10). */
export function failureLine(error: unknown, explained: string | null): string {
  const message = explained ?? (error instanceof Error ? error.message : String(error))
  const cause = explained === null && error instanceof Error ? { err: { stack: error.stack } } : {}
  return JSON.stringify({ level: 60, time: Date.now(), ...cause, msg: `the start failed: ${message}` })
}

export function exitCodeOf(error: unknown): number {
  if (error instanceof UsageError || error instanceof ConfigError) return 2
  return error instanceof CommandError ? error.exitCode : 1
}

/** Explains an error of binding the address; null for other errors. */
function explainListening(error: Error): string | null {
  if (!('syscall' in error) || !('code' in error)) return null
  if (error.syscall === 'getaddrinfo' && 'hostname' in error)
    return `the host name ${error.hostname} cannot be resolved (${error.code}). Set MEDIABUCKET_HOST to an address of this machine.`
  // `bind` is the call of the parent of several workers.
  if ((error.syscall !== 'listen' && error.syscall !== 'bind') || !('address' in error)) return null
  const port = 'port' in error ? error.port : ''
  const setting = 'setting' in error ? error.setting : 'MEDIABUCKET_PORT'
  const address = String(error.address).includes(':')
    ? `[${error.address}]:${port}`
    : `${error.address}:${port}`
  switch (error.code) {
    case 'EADDRINUSE':
      return `the address ${address} is already in use. Stop the program that uses it, or set ${setting} to a free port.`
    case 'EADDRNOTAVAIL':
      return `${error.address} is not an address of this machine. Set MEDIABUCKET_HOST to one that is.`
    case 'EACCES':
      return `this user may not listen on ${address}. Set ${setting} to a port from 1024 on.`
    default:
      return `the service cannot listen on ${address} (${error.code}). Set MEDIABUCKET_HOST and ${setting} to another address.`
  }
}

const moreFiles = 'Too many files are open. Raise the limit, for example with ulimit -n 65536.'
const moreMemory =
  'The machine has too little memory. Stop other programs, or raise the limit of memory or processes.'
const permissions =
  'Run mediabucket as the owner of the data, or set MEDIABUCKET_DATA to a directory that this user may write to.'
const noSpace = 'The disk is full. Free some space on it.'

/** What to do about a system error, by its code. */
const remediesOfCodes: Readonly<Record<string, string>> = {
  EMFILE: moreFiles,
  ENFILE: moreFiles,
  ENOMEM: moreMemory,
  EAGAIN: moreMemory,
  ERR_WORKER_INIT_FAILED: moreMemory,
  ERR_WORKER_OUT_OF_MEMORY: moreMemory,
  EROFS: permissions,
  EPERM: permissions,
  ENOSPC: noSpace,
  EDQUOT: noSpace,
  EIO: 'The disk reports errors. Check the disk.',
}

/** By the system call that failed. */
const remediesOfCalls: Readonly<Record<string, string>> = {
  mkdir: permissions,
  access: permissions,
  open: permissions,
  scandir: permissions,
}
