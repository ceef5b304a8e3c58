import { ConfigError } from '../config/config.ts'
import { BlobsMismatchError } from '../core/blobs-mismatch-error.ts'
import { Fault } from '../core/fault.ts'
import { UnsupportedNodeError } from '../core/unsupported-node.ts'
import {
  BackupHoldError,
  CatalogVersionError,
  DataDirectoryError,
  DataLockedError,
  ForeignEntry,
} from '../engines.ts'
import { BackupError } from '../upkeep/backup-directory.ts'
import { CommandError, UsageError } from './command.ts'

/** Errors whose messages say what happened and what to do. */
const foreseen = [
  UsageError,
  CommandError,
  ConfigError,
  DataDirectoryError,
  CatalogVersionError,
  DataLockedError,
  BackupHoldError,
  BlobsMismatchError,
  ForeignEntry,
  BackupError,
  Fault,
  UnsupportedNodeError,
]

/** The message of a foreseen error, with what to do; null for any other, which is printed whole. */
export function explainFailure(error: unknown): string | null {
  if (!(error instanceof Error)) return null
  if (foreseen.some((kind) => error instanceof kind)) return error.message
  // Of a thread that could not be started the message alone has the code.
  const code =
    /\b(EMFILE|EAGAIN|ENOMEM)\b/.exec(error.message)?.[1] ?? ('code' in error ? String(error.code) : '')
  const call = 'syscall' in error ? String(error.syscall) : ''
  const remedy = remediesOfCodes[code] ?? remediesOfCalls[call]
  if (remedy === undefined) return null
  return `${error.message.replace(/\.$/, '')}. ${remedy}`
}

export function exitCodeOf(error: unknown): number {
  if (error instanceof UsageError || error instanceof ConfigError) return 2
  return error instanceof CommandError ? error.exitCode : 1
}

const moreFiles = 'Too many files are open: raise the limit, for example with ulimit -n 65536.'
const moreMemory =
  'The machine has no memory left for it: stop other programs, or raise the limit of memory or processes.'
const permissions =
  'Run mediabucket as the owner of the data, or set MEDIABUCKET_DATA to a directory that this user may write to.'
const noSpace = 'The disk is full: free some space on it.'

const listening =
  'Set MEDIABUCKET_HOST and MEDIABUCKET_PORT to an address that is free, or stop what listens there.'

/** What to do about an error of the system, by its code. */
const remediesOfCodes: Readonly<Record<string, string>> = {
  EADDRINUSE: listening,
  EADDRNOTAVAIL: 'Set MEDIABUCKET_HOST to an address of this machine.',
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
  EIO: 'The disk reports errors: check it.',
}

/** The same, by the call that failed. */
const remediesOfCalls: Readonly<Record<string, string>> = {
  listen: listening,
  getaddrinfo: 'Set MEDIABUCKET_HOST to an address of this machine.',
  mkdir: permissions,
  access: permissions,
  open: permissions,
  scandir: permissions,
}
